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

/** `npm run verify-history`: verifies the chains of the history, prints the breaks, then exits. */
const help = `Verifies that no entry of the history of flags was changed, removed or inserted.

Each entry contains the hash of the previous entry of the same flag and environment.
This command recomputes the hashes, follows the chains, and compares the end of each
chain with the state of the flag and the audit log, or with the end that was recorded
when the flag, its environment or its project was deleted. It only reads, and the
service can keep running.

  npm run verify-history                       print the breaks
  npm run verify-history -- --anchor FILE      also write the head of each chain
  npm run verify-history -- --against FILE     also compare with earlier heads
  npm run verify-history -- --help             this

Heads
  The head of a chain is the hash of its newest entry. --anchor writes all heads
  to a file (JSON lines, mode 0600) if the history is intact. --against checks that
  each head of such a file is still in its chain. A missing head passes if it is
  older than 30 days and a removal from its chain is recorded.
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
  1    at least one chain is broken. The command prints the first break of each,
       for at most 50 chains, and writes no heads
  2    the history could not be checked: invalid settings, an unreadable file, or
       the database is unavailable

The command cannot detect
  - Without --against: a chain that was recomputed from some entry on with full
    rights, together with the state and the audit log.
  - A flag that was added and removed, with its history and its audit entries,
    between two files of heads. The audit log has no chain.
  - Changes to entries that were removed after AUDIT_RETENTION_DAYS. It does check
    that the remaining entries follow them.
  - A change that was made with an API key or with the access of the service.
`;

const brokenExitCode = 1;
const uncheckedExitCode = 2;

/** Maximum number of breaks that are printed. The rest is only counted. */
const maxShown = 50;

/** Interval at which a long run prints its progress. */
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
    // Pages of flags with many changes can take longer than the statement time-out of the service.
    await sql`set statement_timeout = '10min'`;
    anchor = files.anchor === undefined ? undefined : await createAnchorWriter(files.anchor);
    const against = files.against === undefined ? undefined : comparisonWith(sql, files.against);
    const { breaks, verified } = await report(sql, { anchor, against });
    const verdict =
      breaks === 0 ? "The history is intact" : `The history is broken (${number(breaks)})`;
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

/** Verifies the chains, and prints the breaks as they are found. */
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

/** Adds the schema to the search path, because other roles than that of the service do not have it there. */
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
