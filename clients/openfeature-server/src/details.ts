import type { Client, Evaluation, EvaluationReason } from "@halyard/server-sdk";
import { ErrorCode, type ResolutionDetails } from "@openfeature/server-sdk";

const errorCodes: Partial<Record<EvaluationReason, ErrorCode>> = {
  flag_not_found: ErrorCode.FLAG_NOT_FOUND,
  not_ready: ErrorCode.PROVIDER_NOT_READY,
  invalid_context: ErrorCode.INVALID_CONTEXT,
  invalid_options: ErrorCode.PROVIDER_FATAL,
};

const errorMessages: Partial<Record<ErrorCode, string>> = {
  [ErrorCode.FLAG_NOT_FOUND]: "The environment has no flag with this key.",
  [ErrorCode.PROVIDER_NOT_READY]: "The provider has no flags yet.",
  [ErrorCode.INVALID_CONTEXT]: "The targeting key must be a string or a number.",
  [ErrorCode.PROVIDER_FATAL]: "The options of the provider are invalid; the log has the details.",
  [ErrorCode.TYPE_MISMATCH]: "Halyard's flags are boolean.",
};

/** Returns the details of an evaluation. The metadata has the origin of the flag, such as `stream` or `cache`. */
export function detailsOf(
  { value, variation, reason }: Evaluation,
  { source }: Client["status"],
): ResolutionDetails<boolean> {
  if (variation === undefined) return errorDetails(value, errorCodes[reason] ?? ErrorCode.GENERAL);
  return { value, variant: variation, reason: reason.toUpperCase(), flagMetadata: { source } };
}

/** Returns the default with an error code and a message. */
export function errorDetails<T>(value: T, errorCode: ErrorCode): ResolutionDetails<T> {
  const errorMessage = errorMessages[errorCode] ?? "The evaluation failed.";
  return { value, reason: "ERROR", errorCode, errorMessage };
}
