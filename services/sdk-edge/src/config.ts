import {
  burstVariable,
  operatorTokenDigestVariable,
  perSecondVariable,
  readEnvironment,
  requireInProduction,
  sharedVariables,
  signingPublicKeysVariable,
  variable,
} from "@halyard/service";
import { z } from "zod";

/** Every environment variable of an edge. */
export const configSchema = z.object({
  ...sharedVariables,
  SIGNING_PUBLIC_KEYS: signingPublicKeysVariable,
  OPERATOR_TOKEN_DIGEST: operatorTokenDigestVariable,
  INVALID_KEYS_PER_SECOND: perSecondVariable(
    "Maximum rate of each address that sends invalid API keys to this edge, in requests per second. Beyond it, these requests get 429; requests with valid keys do not.",
  ),
  INVALID_KEYS_BURST: burstVariable,
  SNAPSHOT_CACHE_FILE: variable(z.string().optional(), {
    description:
      "A file of this edge alone, in which it keeps a copy of the flags to start from while NATS is away.",
    expects: "the path of a file",
    documentedDefault: "not set: without NATS, an edge that starts has nothing to serve",
  }),
  STREAM_TOKEN_SECRET: variable(z.string().min(32).optional(), {
    description:
      "What the tokens in the URLs of OFREP streams are signed with. All edges must have the same. Another one ends all tokens: clients fetch a new one by themselves.",
    expects: "a text of at least 32 characters",
    documentedDefault: "not set: OFREP clients are offered no stream, and its address answers 401",
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
        "How many requests a second each API key may send to this edge, on average and at once; more are answered 429. Opening a stream counts as one.",
      expects: "a number above 0, such as 50 or 0.5",
      documentedDefault: "not set: no limit",
    },
  ),
});

export type Config = z.output<typeof configSchema>;

export const readConfig = (): Config =>
  readEnvironment(requireInProduction(configSchema, "SIGNING_PUBLIC_KEYS"), process.env);
