import { isUtf8 } from "node:buffer";
import { type Refusal, refuse } from "@halyard/service";

/** Node gives each byte of a header as one character; these are the characters beyond ASCII. */
const beyondAscii = /[\u0080-\uffff]/;

/** The text of a header's bytes, which are UTF-8 as everything else that is sent here. */
export function readHeaderText(name: string, value: string): string | Refusal {
  if (!beyondAscii.test(value)) return value;
  return (
    decodeUtf8(Buffer.from(value, "latin1")) ??
    refuse("VALIDATION_001", `${name} must be valid UTF-8`)
  );
}

/** Undefined for bytes that are no UTF-8, of which Node would make replacement characters. */
export function decodeUtf8(bytes: Buffer): string | undefined {
  return isUtf8(bytes) ? bytes.toString("utf8") : undefined;
}
