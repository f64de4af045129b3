import {
  bearerToken,
  type DirectoryKey,
  type IsOperatorToken,
  type KeyDirectory,
  keyProblems,
} from "@halyard/api-keys";
import { createProblem, type Problem } from "@halyard/http";
import type { SdkExchange } from "./hot-path.ts";

/** Returns the key of a request, or the problem of a request without a valid one. */
export type Authenticate = (exchange: SdkExchange) => DirectoryKey | Problem;

export const unknownKey = createProblem("AUTH_001", "A valid API key is needed");

/** Authenticates by the API key in `Authorization: Bearer`, and for OFREP also by the one in `X-API-Key`. */
export function createAuthentication(
  directory: KeyDirectory,
  isOperatorToken: IsOperatorToken,
): { byBearer: Authenticate; byEitherHeader: Authenticate } {
  const verify = (text: string, nowMs: number) =>
    directory.verify(text, nowMs) ?? (isOperatorToken(text) ? keyProblems.operator : unknownKey);
  return {
    byBearer({ headers, nowMs }) {
      const token = bearerToken(headers.authorization);
      return token === undefined ? unknownKey : verify(token, nowMs);
    },
    byEitherHeader({ headers, nowMs }) {
      // Another scheme in `Authorization` belongs to a proxy between the client and Halyard.
      const text = bearerToken(headers.authorization) ?? headers["x-api-key"];
      return typeof text === "string" ? verify(text, nowMs) : unknownKey;
    },
  };
}
