import { hasDuplicateMembers, type Refusal, refuse } from "@halyard/service";
import {
  type AttributeMap,
  isJsonObject,
  type Place,
  readAttributeObject,
} from "./attribute-map.ts";
import { decodeUtf8, readHeaderText } from "./header-text.ts";

/** Reads `X-User-Context`: a JSON object of all attributes, as it is or in base64. */
const place: Place = { name: "X-User-Context", fields: "X-User-Context /" };

const notAnObject = refuse(
  "VALIDATION_001",
  "X-User-Context must be a JSON object in UTF-8, as it is or in base64 or base64url",
);

const duplicateMember = refuse(
  "VALIDATION_001",
  "X-User-Context has an object with two members of the same name",
);

export function readContextHeader(value: string): AttributeMap | Refusal {
  const json = beginsWithBrace(value) ? readHeaderText(place.name, value) : decodeBase64(value);
  if (json === undefined) return notAnObject;
  if (typeof json !== "string") return json;
  const context = parseJson(json);
  if (context !== undefined && hasDuplicateMembers(json, context)) return duplicateMember;
  return isJsonObject(context) ? readAttributeObject(context, place) : notAnObject;
}

/** Also after white space. What would end the header, a line's end, cannot be in it. */
function beginsWithBrace(value: string): boolean {
  for (let at = 0; at < value.length; at++) {
    const character = value[at];
    if (character !== " " && character !== "\t") return character === "{";
  }
  return false;
}

const base64 = /^[A-Za-z0-9+/]+(={0,2})$/;
const base64url = /^[A-Za-z0-9_-]+(={0,2})$/;

/** Node's own decoder skips what is no base64, and so would read something else than was meant. */
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
    // The thrown SyntaxError quotes what was sent, which must not get any further.
    return undefined;
  }
}
