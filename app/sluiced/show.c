/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests: which page, its rows in pieces, its text. */
#include "show.h"
#include <stdlib.h>
#include "show_internal.h"

/* --- requests ---------------------------------------------------------------------------- */

/* Whole pages give an object, pages of rows prepare a job. */
static const struct {
	const char *command;
	json_t *(*whole)(struct sl_daemon *d, const json_t *params);
	bool (*rows)(struct sl_show_job *job, const json_t *params);
} commands[] = {{"show_status", sl_show_status, NULL}, {"show_peers", NULL, sl_show_peers},
	{"show_links", NULL, sl_show_links}, {"show_tree", NULL, sl_show_tree},
	{"show_filters", NULL, sl_show_filters}, {"show_routes", NULL, sl_show_routes},
	{"show_ports", sl_show_ports, NULL}, {"show_workers", sl_show_workers, NULL},
	{"show_drops", sl_show_drops, NULL}, {"show_neighbours", sl_show_neighbours, NULL},
	{"show_counters", sl_show_counters, NULL}, {"show_crypto", sl_show_crypto, NULL},
	{"show_acl", sl_show_acl, NULL}, {"show_adverts", NULL, sl_show_adverts},
	{"show_traversal", sl_show_traversal, NULL},
	{"show_mtu", NULL, sl_show_mtu}, {"show_found", NULL, sl_show_found}, {"show_relays", sl_show_relays, NULL}};

static void
append(struct sl_show_job *job, const char *text, size_t len)
{
	if (job->len + len > job->room) {
		size_t room = 2 * (job->len + len) + 1024;
		char *more = job->failed ? NULL : realloc(job->text, room);

		if (!more) {
			job->failed = true;
			return;
		}
		job->text = more;
		job->room = room;
	}
	memcpy(job->text + job->len, text, len);
	job->len += len;
}

/* Takes the value. */
static void
append_json(struct sl_show_job *job, json_t *v, bool members_only)
{
	char *text = v ? json_dumps(v, JSON_COMPACT) : NULL;
	size_t len = text ? strlen(text) : 0;

	if (!text)
		job->failed = true;
	else if (!members_only)
		append(job, text, len);
	else if (len > 2) {
		append(job, ",", 1);
		append(job, text + 1, len - 2);
	}
	free(text);
	json_decref(v);
}

static void
append_error(struct sl_show_job *job, const char *message)
{
	append_json(job, json_pack("{s:s,s:s}", "status", "error", "message", message), false);
	append(job, "\n", 1);
}

static void
job_free(struct sl_show_job *job)
{
	free(job->text);
	free(job->rows);
	free(job->names);
	free(job->router_rows);
	json_decref(job->rest);
	free(job);
}

char *
sl_show_error(const char *message, size_t *out_len)
{
	struct sl_show_job job = {.d = NULL};

	append_error(&job, message);
	*out_len = job.len;
	return job.text;
}

static void
run_command(struct sl_show_job *job, unsigned i, const json_t *params)
{
	static const char head[] = "{\"status\":\"ok\",\"data\":{\"";

	if (commands[i].whole) {
		append_json(job,
			json_pack("{s:s,s:o}", "status", "ok", "data",
				commands[i].whole(job->d, params)),
			false);
		append(job, "\n", 1);
	} else if (commands[i].rows(job, params)) {
		append(job, head, sizeof(head) - 1);
		append(job, job->key, strlen(job->key));
		append(job, "\":[", 3);
	} else {
		job->failed = true;
	}
}

struct sl_show_job *
sl_show_begin(struct sl_daemon *d, const char *line, size_t len)
{
	struct sl_show_job *job = calloc(1, sizeof(*job));
	const char *command;
	json_error_t error;
	json_t *request;
	char message[160];
	unsigned i = 0;

	if (!job)
		return NULL;
	job->d = d;
	if (!len) {
		append_error(job, "empty request");
		return job;
	}
	request = json_loadb(line, len, JSON_REJECT_DUPLICATES, &error);
	command = json_string_value(json_object_get(request, "command"));
	while (command && i < sizeof(commands) / sizeof(commands[0]) &&
		strcmp(commands[i].command, command))
		i++;
	if (!command) {
		snprintf(message, sizeof(message), "invalid request: %.100s",
			request ? "no command" : error.text);
		append_error(job, message);
	} else if (i == sizeof(commands) / sizeof(commands[0])) {
		snprintf(message, sizeof(message), "unknown command: %.100s", command);
		append_error(job, message);
	} else {
		run_command(job, i, json_object_get(request, "params"));
	}
	json_decref(request);
	return job;
}

bool
sl_show_step(struct sl_show_job *job)
{
	if (!job->key || job->failed)
		return true;
	for (unsigned n = 0; n < SL_SHOW_ROWS && job->next < job->count; n++) {
		if (job->next)
			append(job, ",", 1);
		append_json(job, job->render(job, job->rows + job->row_size * job->next++), false);
	}
	if (job->next < job->count)
		return false;
	append(job, "]", 1);
	if (job->rest) {
		append_json(job, job->rest, true);
		job->rest = NULL;
	}
	append(job, "}}\n", 3);
	return true;
}

char *
sl_show_end(struct sl_show_job *job, size_t *out_len)
{
	char *text = NULL;

	if (!job->failed) {
		text = job->text;
		*out_len = job->len;
		job->text = NULL;
	}
	job_free(job);
	return text;
}
