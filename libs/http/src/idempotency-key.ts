import { createProblem, type Problem } from "./answer.ts";

const keyShape = /^[\x20-\x7e]{1,255}$/;
const invalidKey = createProblem(
  "VALIDATION_001",
  "Idempotency-Key must be 1 to 255 printable ASCII characters.",
);

export function checkIdempotencyKey(value: string): Problem | undefined {
  return keyShape.test(value) ? undefined : invalidKey;
}
