import { ErrorBody, type ErrorCode, errorBody } from "./errors.ts";
import { OfrepError, type OfrepErrorCode, OfrepFlagError, ofrepEvaluateFlags } from "./ofrep.ts";

/** Returns the body of an error: OFREP's form for paths below `/ofrep/v1/`, the API's own form for all others. */
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

/** Returns the flag key in the path of a single evaluation; undefined for other paths. The key can contain slashes. */
function ofrepFlagKey(target: string): string | undefined {
  if (!target.startsWith(flagPrefix)) return undefined;
  const [path = ""] = target.split("?", 1);
  const key = path.slice(flagPrefix.length);
  try {
    return decodeURIComponent(key);
  } catch {
    // No flag key contains a percent sign.
    return key;
  }
}

const ofrepPrefix = "/ofrep/v1/";
const flagPrefix = `${ofrepEvaluateFlags.path}/`;

const ofrepCodes: Partial<Record<ErrorCode, OfrepErrorCode>> = {
  VALIDATION_001: "PARSE_ERROR",
  VALIDATION_003: "PARSE_ERROR",
};
