/* SPDX-License-Identifier: BSD-3-Clause */
#include "csv.h"
#include "sl_test.h"

#include <stdlib.h>

static void cut(char *line, char **field)
{
	static char empty[1];

	for (unsigned i = 0; i < CSV_COLUMNS_MAX; i++) {
		field[i] = line ? line : empty;
		if (!line)
			continue;
		line = strchr(line, ',');
		if (line)
			*line++ = '\0';
	}
}

unsigned csv_each(const char *file, void (*row)(char **field))
{
	char path[1024], *line = NULL, *field[CSV_COLUMNS_MAX];
	unsigned rows = 0;
	bool heading = true;
	size_t size = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/crypto/%s", SL_VECTORS_DIR, file);
	f = fopen(path, "r");
	if (!f) {
		sl_test_fail(__FILE__, __LINE__, "cannot open %s", path);
		return 0;
	}
	while (getline(&line, &size, f) > 0) {
		line[strcspn(line, "\r\n")] = '\0';
		if (line[0] == '#' || line[0] == '\0')
			continue;
		if (heading) {
			heading = false;
			continue;
		}
		cut(line, field);
		row(field);
		rows++;
	}
	free(line);
	fclose(f);
	return rows;
}
