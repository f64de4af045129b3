import { isIP } from "node:net";
import { flagEventsStream } from "@halyard/contracts";
import { z } from "zod";
import { readEnvironment, variable } from "./environment.ts";
import { tracingVariables } from "./tracing-variables.ts";

/** Environment variables of every service, to be spread into its schema. */
const logLevels = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;
export type LogLevel = (typeof logLevels)[number];

const modes = ["development", "production"] as const;
type Mode = (typeof modes)[number];

/** A port in decimal digits. `Number` alone would also accept "1e3", " 80" and "0x50". */
const port = z
  .string()
  .regex(/^\d{1,5}$/)
  .transform(Number)
  .pipe(z.int().max(65_535));

const addressRange = /^(?<address>[^/]+)(?:\/(?<prefix>\d{1,3}))?$/;

function isAddressOrRange(text: string): boolean {
  const { address = "", prefix } = addressRange.exec(text)?.groups ?? {};
  const family = isIP(address);
  return family !== 0 && (prefix === undefined || Number(prefix) <= (family === 4 ? 32 : 128));
}

/** A comma-separated list. Spaces around items and empty items are removed. */
export const commaSeparated = z.string().transform((text) =>
  text
    .split(",")
    .map((item) => item.trim())
    .filter((item) => item !== ""),
);

/** A URL with one of the given schemes, such as `http:`. */
export function urlOf(...schemes: string[]) {
  return z.string().refine((text) => schemes.includes(URL.parse(text)?.protocol ?? ""));
}

const modeVariable = variable(z.enum(modes).default("production"), {
  description:
    "In `production`, unsafe settings are rejected. `development` is for a local machine.",
  expects: "development or production",
});

const hostVariable = variable(z.string().optional(), {
  description: "Address on which the process listens.",
  expects: "an address or a host name",
  documentedDefault: "0.0.0.0 in production, 127.0.0.1 in development",
});

const metricsPortVariable = variable(port.default(0), {
  description: "Port of `/metrics`, `/healthz` and `/readyz`. 0 selects a free port.",
  expects: "a port from 0 to 65535",
});

const natsUrlVariable = variable(
  z
    .string()
    .regex(/^(?:(?:nats|tls):\/\/)?[^\s,/]+(?:,(?:(?:nats|tls):\/\/)?[^\s,/]+)*\/?$/)
    .default("nats://127.0.0.1:4222"),
  {
    description: "NATS servers, separated by commas.",
    expects: "addresses such as nats://127.0.0.1:4222",
  },
);

/** The NATS servers and the credentials for them; `natsServers` checks the combination. */
export const natsVariables = {
  NATS_URL: natsUrlVariable,
  NATS_USER: variable(z.string().optional(), {
    description: "NATS user of this process.",
    expects: "a name",
  }),
  NATS_PASSWORD: variable(z.string().optional(), {
    description: "Password of `NATS_USER`.",
    expects: "a string",
    secret: true,
  }),
  NATS_CREDENTIALS_FILE: variable(z.string().optional(), {
    description:
      "Credentials file (`.creds`), instead of a user and a password. Read at every login.",
    expects: "the path of a file with a JWT and an nkey",
  }),
  NATS_NKEY_SEED_FILE: variable(z.string().optional(), {
    description:
      "File with the seed of an nkey, instead of a user and a password. Read at every login.",
    expects: "the path of a file with the seed of a user",
  }),
  NATS_TLS_CA_FILE: variable(z.string().optional(), {
    description: "CA certificate of the NATS servers. If set, connections require TLS.",
    expects: "the path of a file in PEM",
    documentedDefault: "not set: TLS if the server offers it, with the system's CAs",
  }),
  NATS_TLS_CERT_FILE: variable(z.string().optional(), {
    description: "Client certificate, for NATS servers that verify clients.",
    expects: "the path of a file in PEM",
  }),
  NATS_TLS_KEY_FILE: variable(z.string().optional(), {
    description: "Private key of `NATS_TLS_CERT_FILE`.",
    expects: "the path of a file in PEM",
  }),
};

const logLevelVariable = variable(z.enum(logLevels).default("info"), {
  description: "Minimum level of log lines.",
  expects: `one of ${logLevels.join(", ")}`,
});

const trustedProxiesVariable = variable(
  commaSeparated.refine((items) => items.every(isAddressOrRange)).default([]),
  {
    description: "Proxies whose `X-Forwarded-For` header is trusted.",
    expects: "addresses or CIDR ranges, separated by commas",
  },
);

export function portVariable(defaultPort: number) {
  return variable(port.default(defaultPort), {
    description: "Port of the API. 0 selects a free port.",
    expects: "a port from 0 to 65535",
  });
}

const connections = z
  .string()
  .regex(/^\d{1,7}$/)
  .transform(Number)
  .pipe(z.int().min(1));

/** Variables of every process that serves HTTP. */
export const listenVariables = {
  HALYARD_MODE: modeVariable,
  HOST: hostVariable,
  PORT: portVariable(0),
  METRICS_PORT: metricsPortVariable,
  LOG_LEVEL: logLevelVariable,
  TRUSTED_PROXIES: trustedProxiesVariable,
  MAX_CONNECTIONS: variable(connections.default(20_000), {
    description:
      "Maximum number of client connections, including open streams. Each needs an open file. Beyond it, new connections are closed, and so are idle ones.",
    expects: "a whole number from 1",
  }),
  MAX_CONNECTIONS_PER_ADDRESS: variable(connections.default(10_000), {
    description:
      "Maximum number of connections of a client address or IPv6 /64. Beyond it, new ones are closed. `TRUSTED_PROXIES` are exempt.",
    expects: "a whole number from 1",
  }),
};

/** `POSTGRES_URL` of a service with this schema. */
export function postgresUrlVariable(schema: string) {
  return variable(urlOf("postgres:", "postgresql:"), {
    description: `Database URL with the role \`${schema}_service\`.`,
    expects: `an address such as postgres://${schema}_service:secret@host:5432/halyard`,
    secret: true,
  });
}

/** `POSTGRES_OWNER_URL`, the only variable that the migrations of a schema read. */
export function readPostgresOwnerUrl(
  schema: string,
  env: Readonly<Record<string, string | undefined>>,
): string {
  const ownerUrl = variable(urlOf("postgres:", "postgresql:"), {
    description: `Database URL with the role \`${schema}_owner\`. Used by migrations only.`,
    expects: `an address such as postgres://${schema}_owner:secret@host:5432/halyard`,
    secret: true,
  });
  return readEnvironment(z.object({ POSTGRES_OWNER_URL: ownerUrl }), env).POSTGRES_OWNER_URL;
}

export function postgresMaxConnectionsVariable(defaultCount: number) {
  return variable(
    z
      .string()
      .regex(/^\d{1,3}$/)
      .transform(Number)
      .pipe(z.int().min(2))
      .default(defaultCount),
    {
      description: "Maximum number of PostgreSQL connections of this process.",
      expects: "a number from 2 to 999",
    },
  );
}

export const jetstreamReplicasVariable = variable(
  z
    .enum(["1", "3", "5"])
    .default("1")
    .transform((text) => Number(text)),
  {
    description: "Number of replicas of new streams: 1, or 3 in a NATS cluster.",
    expects: "1, 3 or 5",
  },
);

/** Days after which rows are removed. If not set, they are never removed. */
export function retentionDaysVariable(atLeast: number, description: string) {
  return variable(
    z
      .string()
      .regex(/^\d{1,4}$/)
      .transform(Number)
      .pipe(z.int().min(atLeast))
      .optional(),
    {
      description,
      expects: `a number of days from ${atLeast} to 9999`,
      documentedDefault: "not set: nothing is removed",
    },
  );
}

/** Minimum size limit. It has room for the largest events. */
const minFlagEventsBytes = 16 * 1024 * 1024;

export const flagEventsMaxBytesVariable = variable(
  z
    .string()
    .regex(/^\d{1,15}$/)
    .transform(Number)
    .pipe(z.int().min(minFlagEventsBytes))
    .default(flagEventsStream.defaultMaxBytes),
  {
    description:
      "Maximum size of the stream `FLAG_EVENTS`. At this size it discards its oldest events. Use the same value for management and setup.",
    expects: `a number of bytes from ${minFlagEventsBytes}`,
  },
);

/** For services that accept API keys and do not have the operator's token. */
export const operatorTokenDigestVariable = variable(
  z
    .string()
    .regex(/^[0-9a-f]{64}$/i)
    .optional(),
  {
    description:
      "SHA-256 of `OPERATOR_TOKEN`. If set, requests with the operator token get 403 instead of 401.",
    expects: "64 hexadecimal digits",
    // The digest allows offline guesses of the token.
    secret: true,
  },
);

/** Average number of requests per second. */
export function perSecondVariable(description: string, perSecond = 100) {
  return variable(
    z
      .string()
      .regex(/^\d{1,7}(?:\.\d{1,3})?$/)
      .transform(Number)
      .refine((given) => given > 0)
      .default(perSecond),
    { description, expects: "a number above 0, such as 100 or 0.5" },
  );
}

/** Maximum number of requests in a burst. */
export const burstVariable = variable(
  z
    .string()
    .regex(/^\d{1,9}$/)
    .transform(Number)
    .pipe(z.int().min(1))
    .default(1_000),
  {
    description: "Maximum burst of these requests.",
    expects: "a whole number from 1",
  },
);

/** A configurable limit: a whole number from 1. */
export function limitVariable(limit: { default: number; max: number; description: string }) {
  return variable(
    z
      .string()
      .regex(/^\d{1,9}$/)
      .transform(Number)
      .pipe(z.int().min(1).max(limit.max))
      .default(limit.default),
    { description: limit.description, expects: `a number from 1 to ${limit.max}` },
  );
}

/** Rate limit of API keys, for the services of the management API. */
export const keyRateVariables = {
  KEY_REQUESTS_PER_SECOND: perSecondVariable(
    "Rate limit of this process in requests per second: for each API key, and for each address that sends invalid keys. All server keys of an organization together have five times this limit, and so have its client keys. Further requests get 429.",
  ),
  KEY_REQUESTS_BURST: burstVariable,
};

/** Returns the rate limit of API keys from its two variables. */
export function keyRate(config: { KEY_REQUESTS_PER_SECOND: number; KEY_REQUESTS_BURST: number }): {
  requestsPerSecond: number;
  burst: number;
} {
  return { requestsPerSecond: config.KEY_REQUESTS_PER_SECOND, burst: config.KEY_REQUESTS_BURST };
}

export const sharedVariables = { ...listenVariables, ...natsVariables, ...tracingVariables };

/** The settings of the listening address and of its clients. */
export type ListenConfig = {
  HALYARD_MODE: Mode;
  HOST?: string | undefined;
  PORT: number;
  METRICS_PORT: number;
  TRUSTED_PROXIES: readonly string[];
  MAX_CONNECTIONS: number;
  MAX_CONNECTIONS_PER_ADDRESS: number;
};

/** Returns the listening address: by default all addresses in production, only the loopback one in development. */
export function listenHost(config: Pick<ListenConfig, "HALYARD_MODE" | "HOST">): string {
  return config.HOST ?? (config.HALYARD_MODE === "production" ? "0.0.0.0" : "127.0.0.1");
}
