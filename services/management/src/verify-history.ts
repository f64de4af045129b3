import { readFile, rename, rm, writeFile } from "node:fs/promises";
import { parseArgs } from "node:util";
import { ConfigurationError } from "@halyard/configuration";
import { connectPostgres, type Sql } from "@halyard/postgres";
import { createLogger, runCommand } from "@halyard/service";
import { z } from "zod";
import { readDatabaseUrl } from "./config.ts";
import {
  describeBreak,
  findBreaks,
  findMissingHeads,
  type Head,
  maxShown,
  readHeads,
} from "./history/verification.ts";

/** `npm run verify-history`: verifies the chains of the history, prints the breaks, then exits. */
const help = `Verifies that no entry of the history of flags was changed, removed or inserted.

Each entry contains the hash of the previous entry of the same flag and environment.
This command recomputes the hashes and compares each with the previous one. It only
reads, and the service can keep running.

  npm run verify-history                       print the breaks
  npm run verify-history -- --anchor FILE      also write the head of each chain
  npm run verify-history -- --against FILE     also compare with earlier heads
  npm run verify-history -- --help             this

Heads
  The head of a chain is the hash of its newest entry. --anchor writes all heads
  to a file (JSON, mode 0600) if the history is intact. --against checks that each
  head of such a file is still in its chain. A head may be missing if its flag or
  environment was deleted, or if AUDIT_RETENTION_DAYS may have removed it. The last
  30 days are never removed.
  Keep the file where the database's administrators cannot change it. Both
  options can name the same file.

Environment
  POSTGRES_URL    the database of management, with any role that can read the
                  schema "management"

With npm start, on Linux, read the address from the running service:

  PID=$(node -p 'require("./.halyard/demo.json").services.management.pid')
  POSTGRES_URL=$(tr '\\0' '\\n' < /proc/$PID/environ | sed -n 's/^POSTGRES_URL=//p') \\
    npm run verify-history

Exit code
  0    all chains are intact
  1    at least one chain is broken. The command prints the first ${maxShown} breaks and
       writes no heads
  2    the history could not be checked: invalid settings, an unreadable file, or
       the database is unavailable

The command cannot detect
  - Without --against: entries that were removed from the end of a chain, or added to
    it, and a chain that was recomputed from some entry on.
  - A state that differs from its newest entry, and a flag that was removed by hand.
  - The removal of entries older than AUDIT_RETENTION_DAYS from the beginning of a chain.
  - A change that was made with an API key or with the access of the service.
`;

const brokenExitCode = 1;
const uncheckedExitCode = 2;

/** Time limit of each statement. A history of millions of entries takes minutes. */
const maxStatementMs = 60 * 60 * 1_000;

type Files = { anchor: string | undefined; against: string | undefined };

async function verify({ anchor, against }: Files): Promise<void> {
  const earlierHeads = against === undefined ? [] : await readHeadsFile(against);
  const sql = connectPostgres({
    url: readDatabaseUrl(),
    name: "verify-history",
    maxConnections: 1,
    maxSilenceMs: maxStatementMs,
    logger: createLogger({ service: "verify-history", level: "error" }),
  });
  try {
    await sql.unprepared(`set statement_timeout = ${maxStatementMs}`);
    const isIntact = await report(sql, earlierHeads);
    if (against !== undefined)
      process.stdout.write(`Compared with ${number(earlierHeads.length)} heads of ${against}.\n`);
    if (!isIntact) process.exitCode = brokenExitCode;
    else if (anchor !== undefined) {
      const heads = await readHeads(sql);
      await writeHeadsFile(anchor, heads);
      process.stdout.write(`Wrote ${number(heads.length)} heads to ${anchor}.\n`);
    }
  } finally {
    await sql.end();
  }
}

/** Prints the breaks and the result. Returns true if there are no breaks. */
async function report(sql: Sql, earlierHeads: readonly Head[]): Promise<boolean> {
  const { entries, breaks, first } = await findBreaks(sql);
  const missing = await findMissingHeads(sql, earlierHeads);
  const shown = [...first, ...missing].slice(0, maxShown);
  for (const found of shown) process.stdout.write(`${await describeBreak(sql, found)}\n`);
  const all = breaks + missing.length;
  if (all > shown.length) process.stdout.write(`and ${number(all - shown.length)} more\n`);
  const verdict = all === 0 ? "intact" : `broken (${number(all)})`;
  process.stdout.write(`The history is ${verdict}: ${number(entries)} entries checked.\n`);
  return all === 0;
}

const number = (count: number) => count.toLocaleString("en");

/** A file of heads is one JSON document, so that a truncated file is invalid. */
const HeadsFile = z.object({
  heads: z.array(
    z.object({
      flag_id: z.guid(),
      environment_id: z.guid(),
      entry_id: z.guid(),
      changed_at: z.iso.datetime({ offset: true }),
      hash: z.string().regex(/^[0-9a-f]{64}$/),
    }),
  ),
});

async function readHeadsFile(path: string): Promise<Head[]> {
  const text = await readFile(path, "utf8");
  try {
    return HeadsFile.parse(JSON.parse(text)).heads;
  } catch {
    // The cause would print parts of the file.
    throw new ConfigurationError([`${path} is not a complete file of heads`]);
  }
}

/** Writes a file that only its owner can read. It gets its final name when it is complete. */
async function writeHeadsFile(path: string, heads: readonly Head[]): Promise<void> {
  const unfinished = `${path}.${process.pid}.unfinished`;
  try {
    const options = { flag: "wx", mode: 0o600, flush: true };
    await writeFile(unfinished, `${JSON.stringify({ heads })}\n`, options);
    await rename(unfinished, path);
  } finally {
    await rm(unfinished, { force: true });
  }
}

function readArguments(given: readonly string[]): Files | "help" {
  const file = { type: "string" } as const;
  const options = { anchor: file, against: file, help: { type: "boolean", short: "h" } } as const;
  try {
    const { values } = parseArgs({ args: [...given], options });
    return values.help ? "help" : { anchor: values.anchor, against: values.against };
  } catch {
    throw new ConfigurationError([`${given.join(" ")} is not known; see --help`]);
  }
}

await runCommand(async () => {
  const given = readArguments(process.argv.slice(2));
  if (given === "help") {
    process.stdout.write(help);
    return;
  }
  try {
    await verify(given);
  } catch (error) {
    if (error instanceof ConfigurationError) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    process.stderr.write(`The history could not be checked: ${reason}\n`);
    process.exitCode = uncheckedExitCode;
  }
});
