import { type Refusal, refuse } from "@halyard/service";
import type { AttributeMap } from "./attribute-map.ts";

const malformed = refuse(
  "VALIDATION_001",
  "X-User-Attributes must be a list like name=value,name=value",
);

/**
 * Reads `X-User-Attributes`, a list like `country=DE,plan=pro`. A header that is sent again goes on
 * with the list, since HTTP joins the two with a comma. Of a name that comes twice the later wins; an
 * empty id counts as not sent.
 */
export function readAttributesHeader(list: string): AttributeMap | Refusal {
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
