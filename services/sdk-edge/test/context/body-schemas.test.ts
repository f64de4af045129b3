import { compileCheck, OfrepRequest, UserContext } from "@halyard/contracts";
import { isProblem } from "@halyard/http";
import { testSeed } from "@halyard/testing";
import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { readBodyAttributes } from "../../src/context/body-attributes.ts";
import { readOfrepContext } from "../../src/context/ofrep-context.ts";

/**
 * The OpenAPI document contains these schemas, but the edge validates bodies in its readers. These tests compare their
 * results for every combination of two known members with known values, and for generated bodies.
 */
const scalars = ["", "text", 0, 1.5, true, false, null];
const lists = [[], ["a", 1, true], [null], [{}], [["a"]]];
const values = [...scalars, ...lists, {}, { a: {} }, { id: true }];
const names = [
  "id",
  "user_id",
  "targetingKey",
  "user",
  "attributes",
  "context",
  "country",
  "__proto__",
];

/** Creates an object by `JSON.parse`, which creates an own member for every name, as for request bodies. */
const object = (members: [name: string, value: unknown][]): unknown =>
  JSON.parse(
    `{${members.map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`).join()}}`,
  );

function* objectsOf(among: readonly unknown[]): Generator<unknown> {
  yield {};
  for (const first of names)
    for (const value of among) {
      yield object([[first, value]]);
      for (const second of names.filter((name) => name !== first))
        for (const other of values)
          yield object([
            [first, value],
            [second, other],
          ]);
    }
}

const flat = [...objectsOf(values)];
const noObjects: unknown[] = [null, true, 1, "text", [], [{}]];

/** Generates bodies up to four levels deep, mostly with members of known names. */
const anyBody = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, depthSize: "small" },
    fc.constantFrom(...values),
    fc.jsonValue({ maxDepth: 1 }),
    fc.array(tie("value"), { maxLength: 3 }),
    tie("object"),
  ),
  object: fc
    .array(fc.tuple(fc.oneof(fc.constantFrom(...names), fc.string()), tie("value")), {
      maxLength: 4,
    })
    .map((members) => object(members)),
})).object;

const isUserContext = compileCheck(UserContext);
const isOfrepRequest = compileCheck(OfrepRequest);

const sdkVerdicts = (body: unknown) => ({
  reader: !isProblem(readBodyAttributes(body) as object),
  schema: isUserContext(body).ok,
});
const ofrepVerdicts = (body: unknown) => ({
  reader: !("errorCode" in readOfrepContext(body)),
  schema: isOfrepRequest(body).ok,
});

function expectAgreement(
  bodies: Iterable<unknown>,
  verdicts: (body: unknown) => { reader: boolean; schema: boolean },
): void {
  const counts = { accepted: 0, rejected: 0 };
  const differing: string[] = [];
  for (const body of bodies) {
    const { reader, schema } = verdicts(body);
    counts[reader ? "accepted" : "rejected"] += 1;
    if (reader !== schema) differing.push(`${JSON.stringify(body)}: reader ${reader}`);
  }
  expect({ seed: testSeed, differing: differing.slice(0, 10) }).toEqual({
    seed: testSeed,
    differing: [],
  });
  expect(Math.min(counts.accepted, counts.rejected)).toBeGreaterThan(0);
}

describe("given the schema of SDK bodies", () => {
  it("agrees with the reader on every combination of known members", () => {
    expectAgreement([...flat, ...noObjects], sdkVerdicts);
    expectAgreement(
      flat.map((user) => ({ user })),
      sdkVerdicts,
    );
    expectAgreement(
      flat.map((attributes) => ({ user: { attributes } })),
      sdkVerdicts,
    );
  });

  it("agrees with the reader on generated bodies", () => {
    expectAgreement(fc.sample(anyBody, 5_000), sdkVerdicts);
  });
});

describe("given the schema of OFREP bodies", () => {
  it("agrees with the reader on every combination of known members", () => {
    expectAgreement([...flat, ...noObjects], ofrepVerdicts);
    expectAgreement(
      flat.map((context) => ({ context })),
      ofrepVerdicts,
    );
  });

  it("agrees with the reader on generated bodies", () => {
    const requests = fc.sample(anyBody, 5_000);
    expectAgreement(requests, ofrepVerdicts);
    expectAgreement(
      requests.map((context) => ({ context })),
      ofrepVerdicts,
    );
  });
});
