import {
  burstVariable,
  operatorTokenDigestVariable,
  perSecondVariable,
  readEnvironment,
  requireInProduction,
  sharedVariables,
  signingPublicKeysVariable,
  variable,
} from "@halyard/configuration";
import { z } from "zod";

/** Every environment variable of an edge. */
export const configSchema = z.object({
  ...sharedVariables,
  SIGNING_PUBLIC_KEYS: signingPublicKeysVariable,
  OPERATOR_TOKEN_DIGEST: operatorTokenDigestVariable,
  INVALID_KEYS_PER_SECOND: perSecondVariable(
    "Rate limit of this edge for each address that sends invalid API keys, in requests per second. Further invalid requests get 429.",
  ),
  INVALID_KEYS_BURST: burstVariable,
  SNAPSHOT_CACHE_FILE: variable(z.string().optional(), {
    description:
      "File in which this edge caches the flags, to start while NATS is unavailable. Each edge needs its own.",
    expects: "the path of a file",
    documentedDefault: "not set: no cache",
  }),
  STREAM_TOKEN_SECRET: variable(z.string().min(32).optional(), {
    description:
      "Signs the tokens in the URLs of OFREP streams. Must be the same on all edges. A new secret invalidates all tokens; clients fetch new ones.",
    expects: "a string of at least 32 characters",
    documentedDefault: "not set: no OFREP streams; clients poll",
    secret: true,
  }),
  SDK_REQUESTS_PER_SECOND: variable(
    z
      .string()
      .regex(/^\d{1,7}(?:\.\d{1,3})?$/)
      .transform(Number)
      .refine((perSecond) => perSecond > 0)
      .optional(),
    {
      description:
        "Rate limit of this edge for each API key, in requests per second. The burst is one second's worth. Further requests get 429. Opening a stream is one request.",
      expects: "a number above 0, such as 50 or 0.5",
      documentedDefault: "not set: no limit",
    },
  ),
  USAGE_REPORTS_PER_SECOND: perSecondVariable(
    "Rate limit of this edge for the usage reports of each organization, in reports per second. The burst is ten seconds' worth. Further reports get 429, and SDKs send them again. An SDK that evaluates in the application sends one a minute.",
    20,
  ),
});

export type Config = z.output<typeof configSchema>;

export const readConfig = (): Config =>
  readEnvironment(requireInProduction(configSchema, "SIGNING_PUBLIC_KEYS"), process.env);
