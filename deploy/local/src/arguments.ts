export type Arguments =
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
  LOG_LEVEL        log level of the services (default info)
  SDK_REQUESTS_PER_SECOND
                   requests per second that each API key may send to the edge
                   (default: no limit)
  PLANS            additional plans, or other limits for free, starter, pro and growth,
                   as JSON; null is unlimited. The demo organization is on pro:
                   {"pro":{"requests_per_month":null,"sse_connections":null,"projects":null}}
  KEY_REQUESTS_PER_SECOND, KEY_REQUESTS_BURST
                   requests per second, and in a burst, that each server key may send
                   to the other services (default 100 and 1000)
  INVALID_KEYS_PER_SECOND, INVALID_KEYS_BURST
                   requests with invalid keys per second, and in a burst, that each
                   address may send to the edge (default 100 and 1000)
  WEBHOOKS_PER_PROJECT, WEBHOOK_TESTS_PER_ORGANIZATION
                   maximum number of webhooks of a project, and of concurrent webhook
                   tests of an organization (default 100 and 5)
  WEBHOOK_RETRY_DELAYS
                   delays before the retries of a failed delivery
                   (default 1m,5m,30m,2h,12h)
  WEBHOOK_DELIVERY_RETENTION_DAYS
                   days after which finished deliveries are deleted (default 30)
  AUDIT_RETENTION_DAYS, ENDED_KEY_RETENTION_DAYS, USAGE_RETENTION_DAYS
                   days after which the audit log and history, ended API keys, and
                   daily request counts are deleted (default: never)

A service or server that dies is restarted; all other processes continue to run.
If one process dies five times within a minute, everything stops, and the end of
that process's log is shown. With npm run dev, a dead service stays down until its
source files change.

Press Ctrl-C to stop everything. The next start keeps the data. To start from
scratch, delete the directory HALYARD_HOME.
`;
