import { connectPostgres } from "@halyard/postgres";
import { ConfigurationError, createLogger, runCommand } from "@halyard/service";
import { readDatabaseUrl } from "./config.ts";
import { readNames } from "./history/verification/chain-store.ts";
import { describeBreak } from "./history/verification/describe-break.ts";
import { type Verified, verifyChains } from "./history/verification/verify-chains.ts";

/** `npm run verify-history`: checks the chains of the history, says what is broken, then ends. */
const help = `Checks that nobody has changed, removed or added to the history of the flags.

Each entry of the history carries the hash of the one before it, per flag and
environment. This recomputes the hashes, follows the chains, and compares where
each ends: with the state that the flag is in, or with what the audit log says
that it was when it was deleted. It only reads, and the service may go on
working meanwhile.

  npm run verify-history              say what is broken
  npm run verify-history -- --help    this

Environment
  POSTGRES_URL    the database, as management has it. Any role will do that may
                  read the schema "management".

With npm start, on Linux, the address is that of the running service:

  PID=$(node -p 'require("./.halyard/demo.json").services.management.pid')
  POSTGRES_URL=$(tr '\\0' '\\n' < /proc/$PID/environ | sed -n 's/^POSTGRES_URL=//p') \\
    npm run verify-history

Exit code
  0    every chain is whole
  1    at least one is broken; the first thing wrong with each is named, for the
       first 50 of them
  2    it could not be checked: wrong settings, or the database is away

What cannot be found
  - A chain that somebody with full rights has computed anew from some entry on,
    together with the state, or with the audit log about a deleted flag: nothing
    of the chain is kept elsewhere. A backup has the hashes as they were.
  - A flag that is gone altogether: its row, its history, and what the audit log
    says of its deletion. The audit log itself has no chain.
  - What old entries said that were removed after AUDIT_RETENTION_DAYS. That the
    rest follows them is checked.
  - A change that somebody made with a key, or with the service's own access.
`;

const brokenExitCode = 1;
const uncheckedExitCode = 2;

/** More than this nobody reads one by one; how many there are is said in the end. */
const mostShown = 50;

/** How often a long run shows that it goes on. */
const progressEveryMs = 2_000;

async function verify(): Promise<void> {
  const sql = connectPostgres({
    url: inSchemaOfManagement(readDatabaseUrl()),
    name: "verify-history",
    maxConnections: 1,
    logger: createLogger({ service: "verify-history", level: "error" }),
  });
  let breaks = 0;
  let shownAtMs = performance.now();
  try {
    const verified = await verifyChains(sql, {
      broken: async (found) => {
        breaks += 1;
        if (breaks > mostShown) return;
        const names = await readNames(sql, found.place);
        process.stdout.write(`${describeBreak(found, names)}\n`);
      },
      progress: (soFar) => {
        if (performance.now() - shownAtMs < progressEveryMs) return;
        shownAtMs = performance.now();
        process.stderr.write(`… ${counted(soFar)}\n`);
      },
    });
    if (breaks > mostShown) process.stdout.write(`and ${number(breaks - mostShown)} more\n`);
    const verdict =
      breaks === 0 ? "The history is whole" : `The history is broken (${number(breaks)})`;
    process.stdout.write(`${verdict}: ${counted(verified)}.\n`);
    if (breaks > 0) process.exitCode = brokenExitCode;
  } finally {
    await sql.end();
  }
}

function counted({ entries, states, deletions }: Verified): string {
  return `${number(entries)} entries, ${number(states)} states and ${number(deletions)} deletions checked`;
}

const number = (count: number) => count.toLocaleString("en");

/** Roles other than the service's own do not look there by themselves. */
function inSchemaOfManagement(address: string): string {
  const url = new URL(address);
  url.searchParams.set("search_path", "management");
  return url.href;
}

await runCommand(async () => {
  const given = process.argv.slice(2);
  if (given.includes("--help") || given.includes("-h")) {
    process.stdout.write(help);
    return;
  }
  if (given.length > 0)
    throw new ConfigurationError([`${given.join(" ")} is not known; see --help`]);
  try {
    await verify();
  } catch (error) {
    if (error instanceof ConfigurationError) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    process.stderr.write(`The history could not be checked: ${reason}\n`);
    process.exitCode = uncheckedExitCode;
  }
});
