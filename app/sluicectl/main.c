/* SPDX-License-Identifier: BSD-3-Clause */
/* sluicectl: asks the daemon and prints. Exit status: 0 ok, 1 the daemon says error, 2 usage, 3
 * cannot connect. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "client.h"
#include "pages.h"
#include "table.h"

#define DEFAULT_SOCKET "/run/sluice/control.sock"

struct options {
	const char *socket;
	bool json;
	double interval_s;
	struct sl_page_options page;
};

static void
usage(FILE *out)
{
	fputs("Usage: sluicectl [-s SOCKET] [-j] [-w] [-a] show PAGE\n"
	      "       sluicectl [-s SOCKET] [-n SECONDS] watch [PAGE]   the page again and again "
	      "(workers, every second)\n\n"
	      "  -s, --socket SOCKET   of the daemon (" DEFAULT_SOCKET ")\n"
	      "  -j, --json            the daemon's answer as JSON, for programs\n"
	      "  -w, --wide            keys and addresses in full\n"
	      "  -a, --all             rows that are zero too\n"
	      "  -n, --interval S      seconds between pages\n"
	      "  -h, --help   -V, --version\n\nPages:\n",
		out);
	for (unsigned i = 0; i < sl_page_count; i++)
		fprintf(out, "  %-12s %s\n", sl_pages[i].name, sl_pages[i].about);
	fputs("\nExit status: 0 ok, 1 the daemon reports an error, 2 usage, 3 cannot connect.\n",
		out);
}

/* The exit status. */
static int
ask(const struct options *opt, const struct sl_page *page, json_t **data)
{
	char command[64], why[256];
	int fd = sl_ctl_connect(opt->socket), rc;

	if (fd < 0) {
		fprintf(stderr, "sluicectl: cannot connect to %s: %s\n", opt->socket,
			strerror(-fd));
		return 3;
	}
	snprintf(command, sizeof(command), "show_%s", page->name);
	rc = sl_ctl_request(fd, command, NULL, data, why);
	close(fd);
	if (rc)
		fprintf(stderr, "sluicectl: %s\n", why);
	return !rc ? 0 : rc == -EREMOTEIO ? 1 : 3;
}

static int
show(const struct options *opt, const struct sl_page *page)
{
	json_t *data;
	int rc = ask(opt, page, &data);

	if (rc)
		return rc;
	if (opt->json) {
		json_dumpf(data, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII);
		putchar('\n');
	} else {
		page->print(stdout, data, &opt->page);
	}
	json_decref(data);
	return fflush(stdout) ? 1 : 0;
}

static int
watch(const struct options *opt, const struct sl_page *page)
{
	struct timespec wait = {(time_t)opt->interval_s,
		(long)((opt->interval_s - (double)(time_t)opt->interval_s) * 1e9)};
	bool screen = isatty(STDOUT_FILENO) && !opt->json;

	for (;;) {
		int rc;

		if (screen)
			fputs("\033[H\033[2J", stdout);
		rc = show(opt, page);
		if (rc)
			return rc;
		nanosleep(&wait, NULL);
	}
}

int
main(int argc, char **argv)
{
	static const struct option options[] = {{"socket", required_argument, NULL, 's'},
		{"json", no_argument, NULL, 'j'}, {"wide", no_argument, NULL, 'w'},
		{"all", no_argument, NULL, 'a'}, {"interval", required_argument, NULL, 'n'},
		{"help", no_argument, NULL, 'h'}, {"version", no_argument, NULL, 'V'},
		{NULL, 0, NULL, 0}};
	struct options opt = {.socket = DEFAULT_SOCKET, .interval_s = 1};
	const struct sl_page *page;
	bool watching;
	char *end;
	int c;

	while ((c = getopt_long(argc, argv, "s:jwan:hV", options, NULL)) != -1) {
		switch (c) {
		case 's':
			opt.socket = optarg;
			break;
		case 'j':
			opt.json = true;
			break;
		case 'w':
			opt.page.wide = true;
			break;
		case 'a':
			opt.page.all = true;
			break;
		case 'n':
			opt.interval_s = strtod(optarg, &end);
			if (*end || !(opt.interval_s >= 0.1 && opt.interval_s <= 86400)) {
				fputs("sluicectl: --interval is between 0.1 and 86400\n", stderr);
				return 2;
			}
			break;
		case 'h':
			usage(stdout);
			return 0;
		case 'V':
			puts("sluicectl " SLUICE_VERSION);
			return 0;
		default:
			usage(stderr);
			return 2;
		}
	}
	sl_table_limit(opt.page.wide ? 0 : 120);
	argc -= optind;
	argv += optind;
	watching = argc && !strcmp(argv[0], "watch");
	if (!(watching && argc <= 2) && !(argc == 2 && !strcmp(argv[0], "show"))) {
		usage(stderr);
		return 2;
	}
	page = sl_page_find(argc == 2 ? argv[1] : "workers");
	if (!page) {
		fprintf(stderr, "sluicectl: no page is called '%s' (sluicectl --help lists them)\n",
			argv[1]);
		return 2;
	}
	return watching ? watch(&opt, page) : show(&opt, page);
}
