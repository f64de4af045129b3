import type { IncomingHttpHeaders } from "node:http";
import { isRefusal, type Refusal, refuse } from "@halyard/service";
import { type AttributeMap, addIfMissing, addMissing } from "./attribute-map.ts";
import { readAttributesHeader } from "./attributes-header.ts";
import { readContextHeader } from "./context-header.ts";
import { readHeaderText } from "./header-text.ts";

/**
 * What all headers about the user may have together, so that each alone has no more. It leaves as much
 * again of what the server accepts in headers to everything that is not about the user.
 */
const maxUserHeadersBytes = 16 * 1024;

const tooLarge = refuse(
  "VALIDATION_002",
  `The X-User-* headers must have at most ${maxUserHeadersBytes} bytes together`,
);

/** What the headers say about the user; undefined when they say nothing. One without a value counts as not sent. */
export function readUserHeaders(headers: IncomingHttpHeaders): AttributeMap | Refusal | undefined {
  const context = joined(headers["x-user-context"]);
  const id = joined(headers["x-user-id"]);
  const email = joined(headers["x-user-email"]);
  const list = joined(headers["x-user-attributes"]);
  const bytes = context.length + id.length + email.length + list.length;
  if (bytes === 0) return undefined;
  if (bytes > maxUserHeadersBytes) return tooLarge;

  const attributes = context === "" ? undefined : readContextHeader(context);
  if (bytes === context.length) return attributes;
  if (attributes !== undefined && isRefusal(attributes)) return attributes;
  return addIndividualHeaders(attributes, { id, email, list });
}

/** Node joins a header that is sent twice, with a comma, into one; each character is a byte of it. */
function joined(value: string | string[] | undefined): string {
  if (value === undefined) return "";
  return typeof value === "string" ? value : value.join(", ");
}

function addIndividualHeaders(
  known: AttributeMap | undefined,
  individual: { id: string; email: string; list: string },
): AttributeMap | Refusal | undefined {
  let attributes = known;
  if (individual.id !== "") {
    const id = readHeaderText("X-User-ID", individual.id);
    if (typeof id !== "string") return id;
    attributes = addIfMissing(attributes, "id", id);
  }
  if (individual.email !== "") {
    const email = readHeaderText("X-User-Email", individual.email);
    if (typeof email !== "string") return email;
    attributes = addIfMissing(attributes, "email", email);
  }
  if (individual.list === "") return attributes;
  const list = readHeaderText("X-User-Attributes", individual.list);
  if (typeof list !== "string") return list;
  const listed = readAttributesHeader(list);
  return isRefusal(listed) ? listed : addMissing(attributes, listed);
}
