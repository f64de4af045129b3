import { wholeDocument } from "@halyard/contracts";
import { createProblem, isProblem, type Problem } from "@halyard/http";
import {
  type AttributeMap,
  addMissing,
  isJsonObject,
  type Location,
  readAttributeObject,
} from "./attributes.ts";

const wholeBody: Location = { name: wholeDocument, fields: "/" };
const user: Location = { name: "/user", fields: "/user/" };
const userAttributes: Location = { name: "/user/attributes", fields: "/user/attributes/" };

const bodyIsNoObject = createProblem("VALIDATION_001", `${wholeDocument} must be an object`);
const attributesAreNoObject = createProblem("VALIDATION_001", "/user/attributes must be an object");

/**
 * Reads the attributes in the body of a request. There are two forms, and a body may use both: attributes side by
 * side, `{ user_id, country, … }`, and `{ user: { id, attributes: { country, … } } }`. The more specific value wins:
 * `user.id`, then `user.attributes`, then the other fields of `user`, then the fields beside `user`.
 *
 * Rest patterns split the objects, because they create own properties for all names, `__proto__` too.
 */
export function readBodyAttributes(body: unknown): AttributeMap | Problem {
  if (!isJsonObject(body)) return bodyIsNoObject;
  if (!isJsonObject(body.user)) return readAttributeObject(body, wholeBody);
  const { user: described, ...others } = body;
  const fromUser = readUser(described as Record<string, unknown>);
  if (isProblem(fromUser)) return fromUser;
  const fromOthers = readAttributeObject(others, wholeBody);
  return isProblem(fromOthers) ? fromOthers : addMissing(fromUser, fromOthers);
}

function readUser(described: Record<string, unknown>): AttributeMap | Problem {
  const { attributes, ...fields } = described;
  const fromFields = readAttributeObject(fields, user);
  if (isProblem(fromFields) || attributes === undefined || attributes === null) return fromFields;
  if (!isJsonObject(attributes)) return attributesAreNoObject;
  const fromAttributes = readAttributeObject(attributes, userAttributes);
  if (isProblem(fromAttributes)) return fromAttributes;
  const id = fromFields.get("id");
  if (id !== undefined && isGiven(fields.id)) fromAttributes.set("id", id);
  return addMissing(fromAttributes, fromFields);
}

/** Returns whether an id was sent. An empty id counts as not sent. */
function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null && value !== "";
}
