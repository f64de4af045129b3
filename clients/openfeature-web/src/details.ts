import type { Client } from "@halyard/browser-sdk";
import { ErrorCode, type ResolutionDetails, type ResolutionReason } from "@openfeature/web-sdk";

const errorMessages: Partial<Record<ErrorCode, string>> = {
  [ErrorCode.FLAG_NOT_FOUND]: "The environment has no flag with this key.",
  [ErrorCode.PROVIDER_NOT_READY]: "The provider has no values yet.",
  [ErrorCode.TYPE_MISMATCH]: "Halyard's flags are boolean.",
};

/** Returns the details of a value. The metadata has the origin of the value, such as `stream` or `cache`. */
export function detailsOf(value: boolean, status: Client["status"]): ResolutionDetails<boolean> {
  return {
    value,
    variant: value ? "on" : "off",
    reason: reasonOf(status),
    flagMetadata: { source: status.source },
  };
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
