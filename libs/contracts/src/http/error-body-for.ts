import { ErrorBody, type ErrorCode, errorBody } from "./errors.ts";
import { OfrepError, type OfrepErrorCode, OfrepFlagError, ofrepEvaluateFlags } from "./ofrep.ts";

/** Error bodies by path: below `/ofrep/v1/` OFREP's, elsewhere the API's own. */
export function errorBodyFor(
  target: string,
  code: ErrorCode,
  message: string,
): ErrorBody | OfrepError | OfrepFlagError {
  if (!target.startsWith(ofrepPrefix)) return errorBody(code, message);
  const errorCode = ofrepCodes[code] ?? "GENERAL";
  return ofrepErrorFor(target, { errorCode, errorDetails: message });
}

export function errorSchemaFor(path: string) {
  if (!path.startsWith(ofrepPrefix)) return ErrorBody;
  return ofrepFlagKey(path) === undefined ? OfrepError : OfrepFlagError;
}

/** Adds the flag's key to an error about one flag, as OFREP requires. */
export function ofrepErrorFor(target: string, error: OfrepError): OfrepError | OfrepFlagError {
  const key = ofrepFlagKey(target);
  return key === undefined ? error : { key, ...error };
}

/** Returns the key of a single evaluation's path, or undefined for other paths. The key can contain slashes. */
function ofrepFlagKey(target: string): string | undefined {
  if (!target.startsWith(flagPrefix)) return undefined;
  const [path = ""] = target.split("?", 1);
  const key = path.slice(flagPrefix.length);
  try {
    return decodeURIComponent(key);
  } catch {
    // No flag has a percent sign in its key.
    return key;
  }
}

const ofrepPrefix = "/ofrep/v1/";
const flagPrefix = `${ofrepEvaluateFlags.path}/`;

const ofrepCodes: Partial<Record<ErrorCode, OfrepErrorCode>> = {
  VALIDATION_001: "PARSE_ERROR",
  VALIDATION_003: "PARSE_ERROR",
};
