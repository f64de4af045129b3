import type { Client, Details } from "@halyard/browser-sdk";
import { ErrorCode, type ResolutionDetails, type ResolutionReason } from "@openfeature/web-sdk";

const errorMessages: Partial<Record<ErrorCode, string>> = {
  [ErrorCode.FLAG_NOT_FOUND]: "The environment has no flag with this key.",
  [ErrorCode.PROVIDER_NOT_READY]: "The provider has no values yet.",
  [ErrorCode.TYPE_MISMATCH]: "The flag has another type.",
};

/**
 * Returns the details of a value, or the default if there is an error or the flag leaves the value to the application.
 * The metadata has the origin of the value, such as `stream` or `cache`.
 */
export function detailsOf<T>(
  { value, variation, error }: Details<T>,
  { defaultValue, status }: { defaultValue: T; status: Client["status"] },
): ResolutionDetails<T> {
  if (error !== undefined) return errorDetails(defaultValue, ErrorCode[error]);
  const flagMetadata = { source: status.source };
  return variation === null
    ? { value: defaultValue, reason: "DEFAULT", flagMetadata }
    : { value, variant: variation, reason: reasonOf(status), flagMetadata };
}

/** The edge sends values without the reasons of their evaluation. */
function reasonOf({ source, current }: Client["status"]): ResolutionReason {
  if (source === "cache" || source === "bootstrap") return "CACHED";
  return current ? "UNKNOWN" : "STALE";
}

/** Returns the default with an error code and a message. */
export function errorDetails<T>(value: T, errorCode: ErrorCode): ResolutionDetails<T> {
  const errorMessage = errorMessages[errorCode] ?? "The evaluation failed.";
  return { value, reason: "ERROR", errorCode, errorMessage };
}
