import { z } from "zod";

/** All error codes of the API, with their status and category. */
export const errorCodes = {
  AUTH_001: { status: 401, category: "AUTH" },
  AUTH_002: { status: 403, category: "AUTH" },
  AUTH_003: { status: 403, category: "AUTH" },
  NOT_FOUND_001: { status: 404, category: "NOT_FOUND" },
  VALIDATION_001: { status: 400, category: "VALIDATION" },
  VALIDATION_002: { status: 413, category: "VALIDATION" },
  VALIDATION_003: { status: 415, category: "VALIDATION" },
  CONFLICT_001: { status: 409, category: "CONFLICT" },
  CONFLICT_002: { status: 409, category: "CONFLICT" },
  CONFLICT_003: { status: 412, category: "CONFLICT" },
  APPROVAL_001: { status: 409, category: "APPROVAL" },
  RATE_001: { status: 429, category: "RATE" },
  SERVER_001: { status: 500, category: "SERVER" },
  SERVER_002: { status: 503, category: "SERVER" },
} as const;
export type ErrorCode = keyof typeof errorCodes;

export const ErrorBody = z.strictObject({
  error: z.strictObject({
    code: z.enum(Object.keys(errorCodes) as [ErrorCode, ...ErrorCode[]]),
    category: z.string(),
    message: z.string(),
    status: z.int(),
  }),
});
export type ErrorBody = z.infer<typeof ErrorBody>;

/** Returns the body of an error response. It has exactly these four fields. */
export function errorBody(code: ErrorCode, message: string): ErrorBody {
  const { status, category } = errorCodes[code];
  return { error: { code, category, message, status } };
}
