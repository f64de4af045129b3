import { isUtf8 } from "node:buffer";
import type { IncomingHttpHeaders } from "node:http";
import { createProblem, hasDuplicateMembers, isProblem, type Problem } from "@halyard/http";
import {
  type AttributeMap,
  addIfMissing,
  addMissing,
  isJsonObject,
  type Location,
  readAttributeObject,
} from "./attributes.ts";

/**
 * Maximum size of all headers about the user together. The server accepts twice as much in headers, so the same size
 * remains for all other headers.
 */
const maxUserHeadersBytes = 16 * 1024;

const tooLarge = createProblem(
  "VALIDATION_002",
  `The X-User-* headers must have at most ${maxUserHeadersBytes} bytes together`,
);

/** Returns the attributes in the headers; undefined if there are none. A header without a value counts as not sent. */
export function readUserHeaders(headers: IncomingHttpHeaders): AttributeMap | Problem | undefined {
  const context = joined(headers["x-user-context"]);
  const id = joined(headers["x-user-id"]);
  const email = joined(headers["x-user-email"]);
  const list = joined(headers["x-user-attributes"]);
  const bytes = context.length + id.length + email.length + list.length;
  if (bytes === 0) return undefined;
  if (bytes > maxUserHeadersBytes) return tooLarge;

  const attributes = context === "" ? undefined : readContextHeader(context);
  if (bytes === context.length) return attributes;
  if (attributes !== undefined && isProblem(attributes)) return attributes;
  return addIndividualHeaders(attributes, { id, email, list });
}

/** Returns the value of a header, one character for each byte. Node.js joins repeated headers with a comma. */
function joined(value: string | string[] | undefined): string {
  if (value === undefined) return "";
  return typeof value === "string" ? value : value.join(", ");
}

function addIndividualHeaders(
  known: AttributeMap | undefined,
  individual: { id: string; email: string; list: string },
): AttributeMap | Problem | undefined {
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
  return isProblem(listed) ? listed : addMissing(attributes, listed);
}

const location: Location = { name: "X-User-Context", fields: "X-User-Context /" };

const notAnObject = createProblem(
  "VALIDATION_001",
  "X-User-Context must be a JSON object in UTF-8, as it is or in base64 or base64url",
);

const duplicateMember = createProblem(
  "VALIDATION_001",
  "X-User-Context has an object with two members of the same name",
);

/** Reads `X-User-Context`: a JSON object of all attributes, as it is or in base64. */
export function readContextHeader(value: string): AttributeMap | Problem {
  const json = beginsWithBrace(value) ? readHeaderText(location.name, value) : decodeBase64(value);
  if (json === undefined) return notAnObject;
  if (typeof json !== "string") return json;
  const context = parseJson(json);
  if (context !== undefined && hasDuplicateMembers(json, context)) return duplicateMember;
  return isJsonObject(context) ? readAttributeObject(context, location) : notAnObject;
}

/** Returns whether a header begins with a brace, after any white space. A header contains no line breaks. */
function beginsWithBrace(value: string): boolean {
  for (let at = 0; at < value.length; at++) {
    const character = value[at];
    if (character !== " " && character !== "\t") return character === "{";
  }
  return false;
}

const base64 = /^[A-Za-z0-9+/]+(={0,2})$/;
const base64url = /^[A-Za-z0-9_-]+(={0,2})$/;

/**
 * Decodes base64 or base64url; undefined for any other text. Node.js would skip the invalid characters and return other
 * text than the client meant.
 */
function decodeBase64(value: string): string | undefined {
  const found = base64.exec(value) ?? base64url.exec(value);
  if (found === null) return undefined;
  const padding = found[1]?.length ?? 0;
  if (padding > 0 ? value.length % 4 !== 0 : value.length % 4 === 1) return undefined;
  return decodeUtf8(Buffer.from(value, "base64"));
}

function parseJson(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    // The SyntaxError quotes the header, whose content must not appear in logs or responses.
    return undefined;
  }
}

const malformed = createProblem(
  "VALIDATION_001",
  "X-User-Attributes must be a list like name=value,name=value",
);

/**
 * Reads `X-User-Attributes`, a list like `country=DE,plan=pro`. HTTP joins repeated headers with a comma, so a repeated
 * header continues the list. If a name occurs twice, the last value wins. An empty id counts as not sent.
 */
export function readAttributesHeader(list: string): AttributeMap | Problem {
  const attributes: AttributeMap = new Map();
  let userId: string | undefined;
  for (const item of list.split(",")) {
    if (item.trim() === "") continue;
    const equals = item.indexOf("=");
    const name = item.slice(0, Math.max(0, equals)).trim();
    if (name === "") return malformed;
    const value = item.slice(equals + 1).trim();
    if (value === "" && (name === "id" || name === "user_id")) continue;
    if (name === "user_id") userId = value;
    else attributes.set(name, value);
  }
  if (userId !== undefined && !attributes.has("id")) attributes.set("id", userId);
  return attributes;
}

/** Characters beyond ASCII. Node.js returns each byte of a header as one character. */
const beyondAscii = /[\u0080-\uffff]/;

/** Decodes a header from UTF-8. */
function readHeaderText(name: string, value: string): string | Problem {
  if (!beyondAscii.test(value)) return value;
  return (
    decodeUtf8(Buffer.from(value, "latin1")) ??
    createProblem("VALIDATION_001", `${name} must be valid UTF-8`)
  );
}

/** Decodes UTF-8; undefined for invalid bytes, which Node.js would replace by replacement characters. */
function decodeUtf8(bytes: Buffer): string | undefined {
  return isUtf8(bytes) ? bytes.toString("utf8") : undefined;
}
