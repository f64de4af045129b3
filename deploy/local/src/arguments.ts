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

export const HELP = `Runs the whole of Halyard on this machine, on loopback only.

  npm start            PostgreSQL, NATS, every service, a gateway and demo data
  npm run dev          the same, and a service restarts when its sources change
  HALYARD_MODE=production npm start -- --remove-demo-keys
                       production without demo data, after it revoked the demo keys
                       in the database; production does not start with demo keys

Environment
  PORT             the gateway's port (default 8080; 0 takes a free one)
  HALYARD_HOME     where data, keys and logs are kept (default .halyard)
  POSTGRES_URL     a PostgreSQL server of your own, as a role that may create
                   roles and databases: postgres://user:password@host:5432/postgres
  NATS_URL         a NATS server of your own, with JetStream: nats://host:4222
  HALYARD_MODE     development or production: no demo data (default: production
                   where NODE_ENV is production, otherwise development)
  OPERATOR_TOKEN   the operator's token, at least 32 characters (default: one is
                   made and kept)
  LOG_LEVEL        of the services (default info)
  SDK_REQUESTS_PER_SECOND
                   how many requests a second each API key may send to the edge
                   (default: no limit)
  PLANS            plans beside free, starter, pro and growth, or other limits for
                   these, as JSON; null is unlimited. The demo is on pro:
                   {"pro":{"requests_per_month":null,"sse_connections":null,"projects":null}}
  KEY_REQUESTS_PER_SECOND, KEY_REQUESTS_BURST
                   how many requests a second each server key may send to the other
                   services, and how many at once (default 100 and 1000)
  INVALID_KEYS_PER_SECOND, INVALID_KEYS_BURST
                   how many requests with invalid keys each address may send to the
                   edge a second, and at once (default 100 and 1000)
  WEBHOOKS_PER_PROJECT, WEBHOOK_TESTS_PER_ORGANIZATION
                   most webhooks of a project, and most concurrent webhook tests of
                   an organization (default 100 and 5)
  WEBHOOK_RETRY_DELAYS
                   how long after each failed attempt of a delivery the next one is
                   made (default 1m,5m,30m,2h,12h)
  WEBHOOK_DELIVERY_RETENTION_DAYS
                   days for which ended deliveries are kept (default 30)
  AUDIT_RETENTION_DAYS, ENDED_KEY_RETENTION_DAYS, USAGE_RETENTION_DAYS
                   days for which audit log and history, ended API keys, and
                   requests by day are kept (default: for good)

A service or server that dies is started again while everything else goes on.
Five deaths of one process in a minute end the run, with the end of its log.
With npm run dev, a dead service waits for the next change of its sources.

Ctrl-C stops everything. The next start keeps the data; delete HALYARD_HOME to
begin anew.
`;
