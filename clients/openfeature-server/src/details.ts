import type { Client, Details, Evaluation, EvaluationReason } from "@halyard/server-sdk";
import { ErrorCode, type ResolutionDetails } from "@openfeature/server-sdk";

const errorCodes: Partial<Record<EvaluationReason, ErrorCode>> = {
  flag_not_found: ErrorCode.FLAG_NOT_FOUND,
  not_ready: ErrorCode.PROVIDER_NOT_READY,
  invalid_context: ErrorCode.INVALID_CONTEXT,
  invalid_options: ErrorCode.PROVIDER_FATAL,
  type_mismatch: ErrorCode.TYPE_MISMATCH,
};

const errorMessages: Partial<Record<ErrorCode, string>> = {
  [ErrorCode.FLAG_NOT_FOUND]: "The environment has no flag with this key.",
  [ErrorCode.PROVIDER_NOT_READY]: "The provider has no flags yet.",
  [ErrorCode.INVALID_CONTEXT]: "The targeting key must be a string or a number.",
  [ErrorCode.PROVIDER_FATAL]: "The options of the provider are invalid; the log has the details.",
  [ErrorCode.TYPE_MISMATCH]: "The flag has values of another type.",
};

/**
 * Returns the details of an evaluation. The metadata has the origin of the flag, such as `stream` or `cache`, and with a
 * failed prerequisite its key. Without a variation, the flag serves the default of the application.
 */
export function detailsOf<T>(
  { value, variation, reason, prerequisite }: Evaluation | Details<unknown>,
  { source }: Client["status"],
): ResolutionDetails<T> {
  const errorCode = errorCodes[reason];
  if (errorCode !== undefined) return errorDetails(value as T, errorCode);
  return {
    value: value as T,
    ...(typeof variation === "string" && { variant: variation }),
    reason: reason === "prerequisite_failed" ? "DEFAULT" : reason.toUpperCase(),
    flagMetadata: { source, ...(prerequisite !== undefined && { prerequisite }) },
  };
}

/** Returns the default with an error code and a message. */
export function errorDetails<T>(value: T, errorCode: ErrorCode): ResolutionDetails<T> {
  const errorMessage = errorMessages[errorCode] ?? "The evaluation failed.";
  return { value, reason: "ERROR", errorCode, errorMessage };
}
