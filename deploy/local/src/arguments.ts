type Arguments =
  | { kind: "run"; watch: boolean; removeDemoKeys: boolean }
  | { kind: "help" }
  | { kind: "unknown"; argument: string };

const WATCH = "--watch";
const REMOVE_DEMO_KEYS = "--remove-demo-keys";
const OPTIONS: ReadonlySet<string> = new Set([WATCH, REMOVE_DEMO_KEYS]);

export function parseArguments(given: readonly string[]): Arguments {
  if (given.includes("--help") || given.includes("-h")) return { kind: "help" };
  const unknown = given.find((argument) => !OPTIONS.has(argument));
  if (unknown !== undefined) return { kind: "unknown", argument: unknown };
  return {
    kind: "run",
    watch: given.includes(WATCH),
    removeDemoKeys: given.includes(REMOVE_DEMO_KEYS),
  };
}

export const HELP = `Runs the whole of Halyard on this machine. All processes listen on 127.0.0.1 only.

  npm start            starts PostgreSQL, NATS, every service, a gateway and demo data
  npm run dev          the same; restarts a service when its source files change
  HALYARD_MODE=production npm start -- --remove-demo-keys
                       revokes the demo keys in the database, then starts in production
                       mode, which has no demo data and does not start with demo keys

Environment
  PORT             port of the gateway (default 8080; 0: any free port)
  HALYARD_GATEWAY  built-in (default), or proxy: HAProxy, as in installations, from PATH or
                   fetched
  HALYARD_HOME     directory for data, keys and logs (default .halyard)
  POSTGRES_URL     an existing PostgreSQL server, with a role that may create roles and
                   databases: postgres://user:password@host:5432/postgres
                   (default: npm start runs its own server)
  NATS_URL         an existing NATS server with JetStream: nats://host:4222
                   (default: npm start runs its own server)
  HALYARD_MODE     development, or production: without demo data (default: production
                   if NODE_ENV is production, otherwise development)
  OPERATOR_TOKEN   operator token, at least 32 characters (default: generated at the
                   first start and stored in HALYARD_HOME)
  The services and the gateway also get their variables in docs/configuration.md, except
  those that npm start sets itself.

A service or server that dies is restarted; all other processes continue to run.
If one process dies five times within a minute, everything stops, and the end of
that process's log is shown. With npm run dev, a dead service stays down until its
source files change.

Press Ctrl-C to stop everything. The next start keeps the data. To start from
scratch, delete the directory HALYARD_HOME.
`;
