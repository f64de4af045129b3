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

type Origin = Pick<Client["status"], "source"> &
  Pick<Client, "flagSetId"> & { version: number | undefined };

/**
 * Returns the details of an evaluation. The metadata has the origin of the flag, such as `stream` or `cache`, its version,
 * the ids of project and environment, and with a failed prerequisite its key. Without a variation, the flag serves the
 * default of the application.
 */
export function detailsOf<T>(
  { value, variation, reason, prerequisite }: Evaluation | Details<unknown>,
  { source, version, flagSetId }: Origin,
): ResolutionDetails<T> {
  const errorCode = errorCodes[reason];
  const flagMetadata = {
    source,
    ...(version !== undefined && { version }),
    ...(flagSetId !== undefined && { flagSetId }),
    ...(prerequisite !== undefined && { prerequisite }),
  };
  if (errorCode !== undefined) return { ...errorDetails(value as T, errorCode), flagMetadata };
  return {
    value: value as T,
    ...(typeof variation === "string" && { variant: variation }),
    reason: reason === "prerequisite_failed" ? "DEFAULT" : reason.toUpperCase(),
    flagMetadata,
  };
}

/** Returns the default with an error code and a message. */
export function errorDetails<T>(value: T, errorCode: ErrorCode): ResolutionDetails<T> {
  const errorMessage = errorMessages[errorCode] ?? "The evaluation failed.";
  return { value, reason: "ERROR", errorCode, errorMessage };
}
