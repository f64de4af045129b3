import { parseArgs } from "node:util";
import { connectPostgres, type Sql } from "@halyard/postgres";
import { ConfigurationError, createLogger, runCommand } from "@halyard/service";
import { readDatabaseUrl } from "./config.ts";
import { describeBreak } from "./history/verification/chain.ts";
import { readNames, wasRemoved } from "./history/verification/chain-store.ts";
import {
  type AnchorWriter,
  compareHeads,
  createAnchorWriter,
  type HeadComparison,
  readAnchorFile,
} from "./history/verification/heads.ts";
import { type Verified, verifyChains } from "./history/verification/verify-chains.ts";

/** `npm run verify-history`: checks the chains of the history, prints what is broken, then ends. */
const help = `Checks that nobody has changed, removed or added to the history of the flags.

Each entry of the history carries the hash of the one before it, per flag and
environment. This command recomputes the hashes, follows the chains, and compares
the end of each with the state of the flag and the audit log, or with what was
recorded when the flag, its environment or its project was deleted. It only reads,
and the service can run meanwhile.

  npm run verify-history                       print what is broken
  npm run verify-history -- --anchor FILE      also write the head of each chain
  npm run verify-history -- --against FILE     also compare with earlier heads
  npm run verify-history -- --help             this

Heads
  The head of a chain is the hash of its newest entry. --anchor writes all heads
  to a file (JSON lines, mode 0600) if the history is whole. --against checks that
  each head of such a file is still in its chain. A missing head passes if it is
  older than 30 days and a removal from its chain is recorded.
  Keep the file where the database's administrators cannot change it. Both
  options can name the same file.

Environment
  POSTGRES_URL    the database, as management has it. Any role that may read the
                  schema "management"

With npm start, on Linux, the address is that of the running service:

  PID=$(node -p 'require("./.halyard/demo.json").services.management.pid')
  POSTGRES_URL=$(tr '\\0' '\\n' < /proc/$PID/environ | sed -n 's/^POSTGRES_URL=//p') \\
    npm run verify-history

Exit code
  0    every chain is whole
  1    at least one is broken; the first break of each is printed, for the first
       50 of them. No heads are written
  2    it could not be checked: wrong settings, an unreadable file, or the database
       is unavailable

What cannot be found
  - Without --against: a chain that somebody with full rights has recomputed from
    some entry on, together with the state and the audit log.
  - A flag that was added and removed, with its history and its entries in the audit
    log, between two files of heads. The audit log itself has no chain.
  - The content of entries that were removed after AUDIT_RETENTION_DAYS. That the
    rest follows them is checked.
  - A change that somebody made with a key, or with the service's own access.
`;

const brokenExitCode = 1;
const uncheckedExitCode = 2;

/** More than this nobody reads one by one; how many there are is said in the end. */
const maxShown = 50;

/** How often a long run shows that it goes on. */
const progressIntervalMs = 2_000;

type Files = { anchor: string | undefined; against: string | undefined };

async function verify(files: Files): Promise<void> {
  const sql = connectPostgres({
    url: inSchemaOfManagement(readDatabaseUrl()),
    name: "verify-history",
    maxConnections: 1,
    logger: createLogger({ service: "verify-history", level: "error" }),
  });
  let anchor: AnchorWriter | undefined;
  try {
    // Pages of flags with many changes can take longer than the service's own statements.
    await sql`set statement_timeout = '10min'`;
    anchor = files.anchor === undefined ? undefined : await createAnchorWriter(files.anchor);
    const against = files.against === undefined ? undefined : comparisonWith(sql, files.against);
    const { breaks, verified } = await report(sql, { anchor, against });
    const verdict =
      breaks === 0 ? "The history is whole" : `The history is broken (${number(breaks)})`;
    process.stdout.write(`${verdict}: ${counted(verified)}.\n`);
    if (against !== undefined)
      process.stdout.write(`Compared with ${number(against.count())} heads of ${files.against}.\n`);
    if (breaks > 0) process.exitCode = brokenExitCode;
    else if (anchor !== undefined) {
      const heads = await anchor.finish();
      anchor = undefined;
      process.stdout.write(`Wrote ${number(heads)} heads to ${files.anchor}.\n`);
    }
  } finally {
    await anchor?.discard();
    await sql.end();
  }
}

function comparisonWith(sql: Sql, path: string): HeadComparison {
  return compareHeads(readAnchorFile(path), {
    wasRemoved: (head) => wasRemoved(sql, head),
    now: new Date(),
  });
}

/** Prints the breaks as they are found. */
async function report(
  sql: Sql,
  { anchor, against }: { anchor: AnchorWriter | undefined; against: HeadComparison | undefined },
): Promise<{ breaks: number; verified: Verified }> {
  let breaks = 0;
  let shownAtMs = performance.now();
  const verified = await verifyChains(sql, {
    broken: async (found) => {
      breaks += 1;
      if (breaks > maxShown) return;
      const names = await readNames(sql, found.scope);
      process.stdout.write(`${describeBreak(found, names)}\n`);
    },
    progress: (soFar) => {
      if (performance.now() - shownAtMs < progressIntervalMs) return;
      shownAtMs = performance.now();
      process.stderr.write(`… ${counted(soFar)}\n`);
    },
    head: anchor?.add,
    against,
  });
  if (breaks > maxShown) process.stdout.write(`and ${number(breaks - maxShown)} more\n`);
  return { breaks, verified };
}

function counted({ entries, states, deletions }: Verified): string {
  return `${number(entries)} entries, ${number(states)} states and ${number(deletions)} deletions checked`;
}

const number = (count: number) => count.toLocaleString("en");

/** Roles other than the service's own do not look there by themselves. */
function inSchemaOfManagement(address: string): string {
  const url = new URL(address);
  url.searchParams.set("options", "-c search_path=management");
  return url.href;
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
