/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sluiced: arguments and the configuration; daemon.c does the rest.
 * Exit status: 0 left on request or checked; 1 could not start or failed while running; 2 bad usage
 * or configuration.
 */
#include <getopt.h>
#include <stdlib.h>
#include "config.h"
#include "daemon.h"

#define DEFAULT_CONFIG "/etc/sluice/sluice.yaml"

static void
usage(FILE *out)
{
	fputs("Usage: sluiced [-c FILE]            run with the configuration FILE (" DEFAULT_CONFIG
	      ")\n"
	      "       sluiced --check [-c] FILE    check it and print what it means in full; "
	      "nothing is started\n"
	      "       sluiced --keys               all configuration keys as Markdown tables\n"
	      "       sluiced --help | --version\n",
		out);
}

/* 0, or the exit status. */
static int
load(struct sl_config *config, const char *path)
{
	struct sl_conf_error error;

	if (sl_config_load(config, path, &error) || sl_config_check_run(config, &error)) {
		if (!error.text[0])
			snprintf(error.text, sizeof(error.text), "out of memory");
		sl_config_error_print(stderr, path, &error);
		return 2;
	}
	for (uint32_t i = 0; i < config->warning_count; i++) {
		fputs("warning: ", stderr);
		sl_config_error_print(stderr, path, &config->warnings[i]);
	}
	return 0;
}

int
main(int argc, char **argv)
{
	static const struct option options[] = {{"config", required_argument, NULL, 'c'},
		{"check", no_argument, NULL, 'C'}, {"keys", no_argument, NULL, 'k'},
		{"help", no_argument, NULL, 'h'}, {"version", no_argument, NULL, 'V'},
		{NULL, 0, NULL, 0}};
	const char *path = NULL;
	struct sl_config *config;
	bool check = false;
	int c, rc;

	while ((c = getopt_long(argc, argv, "c:hV", options, NULL)) != -1) {
		switch (c) {
		case 'c':
			path = optarg;
			break;
		case 'C':
			check = true;
			break;
		case 'k':
			sl_config_print_keys(stdout);
			return 0;
		case 'h':
			usage(stdout);
			return 0;
		case 'V':
			puts("sluiced " SLUICE_VERSION);
			return 0;
		default:
			usage(stderr);
			return 2;
		}
	}
	if (!path && optind < argc)
		path = argv[optind++];
	if (optind < argc) {
		usage(stderr);
		return 2;
	}
	if (!path)
		path = DEFAULT_CONFIG;
	if (sl_crypto_init()) {
		fputs("sluiced: no usable random source\n", stderr);
		return 1;
	}
	config = sl_config_create();
	if (!config) {
		fputs("sluiced: out of memory\n", stderr);
		return 1;
	}
	rc = load(config, path);
	if (!rc && check) {
		sl_config_print(stdout, config);
		rc = fflush(stdout) ? 1 : 0;
	} else if (!rc) {
		rc = sl_daemon_run(config, path);
	}
	sl_config_destroy(config);
	return rc;
}
