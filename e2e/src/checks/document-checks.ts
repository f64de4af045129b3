import { createAjv } from "@halyard/contracts";
import { document, type Operation, type Schema } from "../traffic/openapi.ts";
import type { RawAnswer } from "../traffic/raw-request.ts";

/** Validates data and responses against the schemas of the public OpenAPI document. */
const ajv = createAjv().addSchema(
  withReferences({ $defs: document.components.schemas }),
  "schemas",
);

/** Replaces references into the document with references to the definitions that ajv has loaded. */
function withReferences<T>(part: T): T {
  return JSON.parse(
    JSON.stringify(part).replaceAll('"#/components/schemas/', '"schemas#/$defs/'),
  ) as T;
}

/** Returns why the data violate the schema, or undefined. */
type FindProblem = (data: unknown) => string | undefined;

export function compileSchema(schema: Schema): FindProblem {
  const validate = ajv.compile(withReferences(schema));
  return (data) => (validate(data) ? undefined : ajv.errorsText(validate.errors));
}

/** Headers of connections, of cross-origin requests, and of message framing. */
const unrelated =
  /^(access-control-.*|connection|keep-alive|date|content-(type|length)|transfer-encoding|x-accel-buffering)$/;

/** Returns how a response differs from the document in its status, headers or body, or undefined. */
export function problemOfAnswer(operation: Operation, answer: RawAnswer): string | undefined {
  const response = operation.responses[answer.status];
  if (response === undefined) return `status ${answer.status} is not in the document`;
  for (const name of Object.keys(answer.headers))
    if (!unrelated.test(name) && response.headers[name] === undefined)
      return `header ${name} of ${answer.status} is not in the document`;
  for (const [name, { required, schema }] of Object.entries(response.headers)) {
    const value = answer.headers[name];
    if (value === undefined && required) return `header ${name} of ${answer.status} is missing`;
    const read = schema.type === "integer" ? Number(value) : value;
    const problem = value === undefined ? undefined : compiled(schema)(read);
    if (problem !== undefined) return `header ${name} of ${answer.status}: ${problem}`;
  }
  return problemOfBody(response.content, answer);
}

function problemOfBody(
  content: Operation["responses"][string]["content"],
  { status, headers, text }: RawAnswer,
): string | undefined {
  const type = headers["content-type"]?.toString().split(";")[0];
  if (Object.keys(content).length === 0) return text === "" ? undefined : `${status} has a body`;
  const schema = content[type ?? ""]?.schema;
  if (schema === undefined) return `${type} of ${status} is not in the document`;
  if (type !== "application/json") return undefined;
  const problem = compiled(schema)(JSON.parse(text));
  return problem && `body of ${status}: ${problem}`;
}

const known = new Map<string, FindProblem>();

function compiled(schema: Schema): FindProblem {
  const text = JSON.stringify(schema);
  const check = known.get(text) ?? compileSchema(schema);
  known.set(text, check);
  return check;
}
