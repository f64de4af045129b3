import { createContext } from "@halyard/evaluation";
import { isProblem } from "@halyard/http";
import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { readOfrepContext } from "../../src/context/ofrep-context.ts";
import { readUserContext } from "../../src/context/user-context.ts";
import { asHeader, asQuery, holds } from "./reading.ts";

/** Part of every name and value in requests. It must not occur in any response. */
const mark = "xqzmarkzqx";

const Context = createContext(new Map()).constructor;

/** Returns the text of a problem; undefined for a context. Every result must be one or the other. */
function problemTextOf(answered: object): string | undefined {
  if (answered instanceof Context) return undefined;
  if (isProblem(answered)) return `${answered.rejected} ${answered.message}`;
  expect(Object.keys(answered)).toEqual(["errorCode", "errorDetails"]);
  return Object.values(answered).join(" ");
}

const markedText = fc.oneof(
  fc.constantFrom(
    "",
    "id",
    "user_id",
    "user",
    "attributes",
    "__proto__",
    "context",
    "targetingKey",
  ),
  fc.string({ unit: "binary" }).map((text) => `${mark}${text}`),
);

const json = fc.letrec<{ value: unknown; object: Record<string, unknown> }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small" },
    fc.constantFrom(null, true, 0, -0, 1e308, Number.POSITIVE_INFINITY),
    fc.double(),
    markedText,
    fc.array(tie("value"), { maxLength: 4 }),
    tie("object"),
  ),
  object: fc.dictionary(markedText, tie("value"), { maxKeys: 6, noNullPrototype: true }),
}));

/** Returns the JSON text of a value, including numbers beyond the range of a double. */
function asJson(value: unknown): string {
  return JSON.stringify(value, (_name, inner: unknown) =>
    inner === Number.POSITIVE_INFINITY ? "1e400" : inner,
  ).replaceAll('"1e400"', "1e400");
}

const headerText = fc.oneof(
  { withCrossShrink: true, arbitrary: json.object.map(asJson), weight: 2 },
  {
    arbitrary: json.object.map((value) => Buffer.from(asJson(value)).toString("base64")),
    weight: 1,
  },
  {
    arbitrary: json.object.map((value) => Buffer.from(asJson(value)).toString("base64url")),
    weight: 1,
  },
  {
    arbitrary: fc
      .array(fc.tuple(markedText, markedText))
      .map((pairs) => pairs.map((pair) => pair.join("=")).join(",")),
    weight: 1,
  },
  { arbitrary: markedText, weight: 1 },
);

/** Header values that Node accepts: most are UTF-8, some are truncated. */
const header = fc.option(
  fc
    .tuple(headerText.map(asHeader), fc.nat(300))
    .map(([text, cut]) => (cut < 30 ? text.slice(cut) : text)),
  { nil: undefined },
);

const query = fc.oneof(
  fc.constant(""),
  fc
    .array(fc.tuple(fc.constantFrom("user_id", "%75ser_id", "key", mark), markedText, fc.boolean()))
    .map((parts) =>
      parts
        .map(
          ([name, text, encoded]) =>
            `${name}=${encoded ? encodeURIComponent(text.toWellFormed()) : text}`,
        )
        .join("&"),
    ),
);

const headers = fc.record({
  "x-user-context": header,
  "x-user-id": header,
  "x-user-email": header,
  "x-user-attributes": header,
});

describe("given arbitrary headers, query and body", () => {
  it("returns a context, or a problem that repeats no input", () => {
    fc.assert(
      fc.property(
        headers,
        query,
        fc.option(json.value, { nil: undefined }),
        (sent, search, body) => {
          const answered = readUserContext({
            headers: sent,
            ...asQuery(search),
            body: body === undefined ? undefined : JSON.parse(asJson(body)),
          });
          expect(problemTextOf(answered) ?? "").not.toContain(mark);
        },
      ),
      { numRuns: 1_000 },
    );
  });
});

describe("given an arbitrary body of an OFREP request", () => {
  it("returns a context, or an error that repeats no input", () => {
    const body = fc.oneof(
      json.value,
      json.value.map((context) => ({ context })),
    );
    fc.assert(
      fc.property(body, (sent) => {
        const answered = readOfrepContext(JSON.parse(asJson(sent)));
        expect(problemTextOf(answered) ?? "").not.toContain(mark);
      }),
      { numRuns: 1_000 },
    );
  });
});

const deep = (levels: number) => `${"[".repeat(levels)}${"]".repeat(levels)}`;
const deepObject = (levels: number) => `${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`;

describe("given values nested as deeply as the maximum length of a body allows", () => {
  const nested: [string, string][] = [
    ["arrays", `{"a":${deep(32_000)}}`],
    ["objects", deepObject(10_000)],
    ["users", `${'{"user":'.repeat(7_000)}{}${"}".repeat(7_000)}`],
    ["arrays in a user", `{"user":{"attributes":{"a":${deep(32_000)}}}}`],
  ];

  it.each(nested)("rejects %s", (_case, body) => {
    const answered = readUserContext({ headers: {}, ...asQuery(""), body: JSON.parse(body) });
    expect(answered).toHaveProperty("rejected", "VALIDATION_001");
  });

  it.each(nested)("ignores %s in OFREP", (_case, body) => {
    expect(readOfrepContext({ context: JSON.parse(body) })).not.toHaveProperty("errorCode");
  });

  it("rejects them in a header, complete or truncated", () => {
    for (const value of [`{"a":${deep(8_000)}}`, '{"a":'.repeat(3_000), deepObject(2_500)])
      for (const sent of [value, Buffer.from(value.slice(0, 12_000)).toString("base64")])
        expect(
          readUserContext({ headers: { "x-user-context": sent }, ...asQuery(""), body: undefined }),
        ).toHaveProperty("rejected", "VALIDATION_001");
  });
});

describe("given 10,000 attributes", () => {
  const pairs = Array.from({ length: 10_000 }, (_, index) => `"a${index}":${index}`).join(",");
  const flat: unknown = JSON.parse(`{${pairs}}`);

  it.each([
    ["at the top level", flat],
    ["in user.attributes", { user: { id: "u", attributes: flat } }],
    [
      "in both, and in user",
      { user: { ...(flat as object), attributes: flat }, ...(flat as object) },
    ],
  ])("reads all of them: %s", (_case, body) => {
    const context = readUserContext({ headers: {}, ...asQuery(""), body });
    if (isProblem(context)) throw new Error(context.message);
    for (const index of [0, 1, 5_000, 9_999]) expect(holds(context, `a${index}`, index)).toBe(true);
  });
});

describe("given names of prototype members in every source", () => {
  it("reads them as attributes, and changes no prototype", () => {
    const names = ["__proto__", "constructor", "prototype", "toString", "hasOwnProperty"];
    const object = `{${names.map((name) => `"${name}":"sent"`).join(",")}}`;
    const list = names.map((name) => `${name}=sent`).join(",");
    const inputs = [
      { headers: { "x-user-context": object }, ...asQuery(""), body: undefined },
      { headers: { "x-user-attributes": list }, ...asQuery(""), body: undefined },
      { headers: {}, ...asQuery(""), body: JSON.parse(object) },
      { headers: {}, ...asQuery(""), body: JSON.parse(`{"user":${object}}`) },
      { headers: {}, ...asQuery(""), body: JSON.parse(`{"user":{"attributes":${object}}}`) },
    ];
    for (const input of inputs) {
      const context = readUserContext(input);
      if (isProblem(context)) throw new Error(context.message);
      for (const name of names) expect(holds(context, name, "sent")).toBe(true);
      expect(holds(context, "valueOf", "sent")).toBe(false);
    }
    expect(({} as Record<string, unknown>).sent).toBeUndefined();
    expect(String({})).toBe("[object Object]");
  });
});
