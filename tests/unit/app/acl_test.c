/* SPDX-License-Identifier: BSD-3-Clause */
/* Access lists: what a pair of files says about a key, line by line, and when they are read again. */
#include "acl.h"
#include "sl_test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* The keys of secrets 1 and 2. */
#define ONE "npub10xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqpkge6d"
#define TWO "npub1ccz8l9zpa47k6vz9gphftsrumpw80rjt3nhnefat4symjhrsnmjs38mnyd"

static char dir[64];
static uint8_t one[SL_XONLY_BYTES], two[SL_XONLY_BYTES];

int sl_test_setup(int argc, char **argv);

int
sl_test_setup(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return sl_npub_parse(one, ONE) || sl_npub_parse(two, TWO);
}

static void
put(const char *name, const char *text)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	if (!text) {
		(void)remove(path);
		return;
	}
	f = fopen(path, "w");
	SL_ASSERT(f != NULL);
	fputs(text, f);
	fclose(f);
}

static void
folder(void)
{
	snprintf(dir, sizeof(dir), "/tmp/sluice-acl-XXXXXX");
	SL_ASSERT(mkdtemp(dir) != NULL);
}

static void
folder_gone(void)
{
	static const char *const names[] = {"peers.allow", "peers.deny", "hosts"};

	for (unsigned i = 0; i < 3; i++)
		put(names[i], NULL);
	SL_EXPECT_EQ(rmdir(dir), 0);
}

/* The second key's alias in the configuration. */
static int
alias(void *arg, const char *name, uint8_t xonly[SL_XONLY_BYTES])
{
	(void)arg;
	if (strcmp(name, "Second") != 0)
		return -ENOENT;
	memcpy(xonly, two, SL_XONLY_BYTES);
	return 0;
}

static const struct row {
	const char *what, *allow, *deny, *hosts;
	bool one, two;
	unsigned skipped;
	const char *mode;
} rows[] = {
	{"no files", NULL, NULL, NULL, true, true, 0, "default_open"},
	{"empty files", "", "\n\n# nothing\n", NULL, true, true, 0, "default_open"},
	{"an allow file alone is not a list", ONE "\n", NULL, NULL, true, true, 0, "allowlist"},
	{"deny ALL makes it one", ONE "\n", "ALL\n", NULL, true, false, 0, "allow_then_deny_all"},
	{"all in any case", NULL, "aLl", NULL, false, false, 0, "deny_all"},
	{"deny one", NULL, TWO "\n", NULL, true, false, 0, "denylist"},
	{"allow goes first", TWO "\n", ONE "\n" TWO "\n", NULL, false, true, 0, "allow_then_deny"},
	{"allow ALL", "ALL\n", ONE "\nALL\n", NULL, true, true, 0, "allow_all"},
	{"comments, blanks, CR, no end of line", "\n  # x\r\n \t" ONE " # the first\r\n", "all# everybody", NULL, true, false,
		0, "allow_then_deny_all"},
	{"two words are no entry", ONE " " TWO "\nALL please\n", "ALL\n", NULL, false, false, 2, "deny_all"},
	{"a comment hides the second word", ONE " #" TWO, "ALL\n", NULL, true, false, 0, "allow_then_deny_all"},
	{"not an npub", "npub1xyz\nnobody\n", "ALL\n", NULL, false, false, 2, "deny_all"},
	{"a name of hosts, any case", "FIRST\n", "ALL\n", "first " ONE "\n", true, false, 0, "allow_then_deny_all"},
	{"an alias", "Second\n", "ALL\n", NULL, false, true, 0, "allow_then_deny_all"},
	{"hosts goes before the alias", "Second\n", "ALL\n", "second " ONE "\n", true, false, 0, "allow_then_deny_all"},
	{"hosts: the last line counts, bad ones are skipped", "x\n", "ALL\n",
		"# c\nx " ONE "\nx " TWO "\nx\nx " ONE " y\nnpub1a " ONE "\nx npub1\n", false, true, 4, "allow_then_deny_all"},
	{"each key once", ONE "\n" TWO "\n" ONE "\n", "ALL", NULL, true, true, 0, "allow_then_deny_all"},
};

SL_TEST(acl, rows)
{
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *r = &rows[i];
		struct sl_acl *acl;

		folder();
		put("peers.allow", r->allow);
		put("peers.deny", r->deny);
		put("hosts", r->hosts);
		acl = sl_acl_create(dir, false, alias, NULL);
		SL_ASSERT(acl != NULL);
		SL_EXPECT_MSG(sl_acl_allows(acl, one) == r->one, "%s: one", r->what);
		SL_EXPECT_MSG(sl_acl_allows(acl, two) == r->two, "%s: two", r->what);
		SL_EXPECT_MSG(sl_acl_skipped(acl) == r->skipped, "%s: %u skipped", r->what, sl_acl_skipped(acl));
		SL_EXPECT_STR(sl_acl_mode(acl), r->mode);
		SL_EXPECT(!sl_acl_refresh(acl));
		sl_acl_destroy(acl);
		folder_gone();
	}
}

/* A folder that must be there and goes: its lists stay, or everybody would be let in. */
SL_TEST(acl, a_folder_that_goes)
{
	struct sl_acl *acl;
	char away[160];

	folder();
	put("peers.deny", "ALL");
	acl = sl_acl_create(dir, true, NULL, NULL);
	SL_ASSERT(acl != NULL);
	snprintf(away, sizeof(away), "%s-away", dir);
	SL_ASSERT(rename(dir, away) == 0);
	SL_EXPECT(!sl_acl_refresh(acl));
	SL_EXPECT_EQ(sl_acl_unreadable(acl), 1);
	SL_EXPECT(!sl_acl_allows(acl, one));
	SL_ASSERT(rename(away, dir) == 0);
	(void)sl_acl_refresh(acl);
	SL_EXPECT(!sl_acl_allows(acl, one));
	put("peers.deny", NULL);
	SL_EXPECT(sl_acl_refresh(acl));
	SL_EXPECT(sl_acl_allows(acl, one));
	sl_acl_destroy(acl);
	folder_gone();
}

SL_TEST(acl, read_again_when_changed)
{
	struct sl_acl *acl;
	char path[128];

	folder();
	acl = sl_acl_create(dir, false, NULL, NULL);
	SL_ASSERT(acl != NULL);
	put("peers.deny", ONE);
	SL_EXPECT(sl_acl_allows(acl, one));
	SL_EXPECT(sl_acl_refresh(acl));
	SL_EXPECT(!sl_acl_allows(acl, one));
	SL_EXPECT(!sl_acl_refresh(acl));
	put("peers.deny", "#" ONE);
	SL_EXPECT(sl_acl_refresh(acl));
	SL_EXPECT(sl_acl_allows(acl, one));
	put("peers.deny", "ALL");
	put("peers.allow", "name");
	put("hosts", "name " TWO);
	SL_EXPECT(sl_acl_refresh(acl));
	SL_EXPECT(sl_acl_allows(acl, two) && !sl_acl_allows(acl, one));
	put("hosts", "name " ONE); /* the name is another's now */
	{
		struct timespec later[2] = {{.tv_sec = 2000000000}, {.tv_sec = 2000000000}};

		snprintf(path, sizeof(path), "%s/hosts", dir);
		SL_EXPECT_EQ(utimensat(-1, path, later, 0), 0);
	}
	SL_EXPECT(sl_acl_refresh(acl));
	SL_EXPECT(sl_acl_allows(acl, one) && !sl_acl_allows(acl, two));
	put("peers.deny", NULL);
	SL_EXPECT(sl_acl_refresh(acl));
	SL_EXPECT(sl_acl_allows(acl, two));
	/* What cannot be read lets nobody in: the lists stay. */
	put("peers.deny", "ALL");
	SL_EXPECT(sl_acl_refresh(acl));
	put("peers.deny", NULL);
	snprintf(path, sizeof(path), "%s/peers.deny", dir);
	SL_EXPECT_EQ(mkdir(path, 0700), 0);
	SL_EXPECT(!sl_acl_refresh(acl));
	SL_EXPECT_EQ(sl_acl_unreadable(acl), 1);
	SL_EXPECT(!sl_acl_allows(acl, two));
	SL_EXPECT(sl_acl_create(dir, false, NULL, NULL) == NULL);
	SL_EXPECT_EQ(rmdir(path), 0);
	SL_EXPECT(sl_acl_refresh(acl));
	SL_EXPECT(sl_acl_allows(acl, two));
	sl_acl_destroy(acl);
	folder_gone();
	SL_EXPECT(sl_acl_create(dir, true, NULL, NULL) == NULL);
	SL_EXPECT_EQ(errno, ENOENT);
	acl = sl_acl_create("", true, NULL, NULL);
	SL_EXPECT(acl && sl_acl_allows(acl, one) && !sl_acl_refresh(acl));
	sl_acl_destroy(acl);
}
