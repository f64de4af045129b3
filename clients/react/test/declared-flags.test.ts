import {
  createTestClient,
  defineFlags,
  HalyardProvider,
  useFlag,
  useFlags,
  useHalyardClient,
  useValue,
} from "@halyard/react";
import { afterEach, expect, it, jest } from "@jest/globals";
import { createElement } from "react";
import { renderToString } from "react-dom/server";

/** Types of the hooks in an application that declares its flags. The declaration applies to all tests of this folder. */
const flags = defineFlags({ checkout: "boolean", color: "string", limits: "object" });

declare module "@halyard/react" {
  interface Register {
    flags: typeof flags;
  }
}

function Shop(): string {
  const all: { readonly checkout?: boolean } = useFlags();
  const isNew: boolean = useFlag("checkout");
  const color: string = useValue("color", "grey");
  const { seats }: { seats: number } = useValue("limits", { seats: 1 });
  return `${isNew} ${color} ${seats} ${all.checkout}`;
}

function WrongShop(): string {
  // @ts-expect-error: a text is not on or off.
  const isNew = useFlag("color");
  // @ts-expect-error: the fallback has another type than the flag.
  const color = useValue("color", 1);
  // @ts-expect-error: no such flag.
  const missing = useValue("missing", "a");
  // @ts-expect-error: not a boolean flag.
  const isText = useFlags().color;
  // @ts-expect-error: no such flag.
  const isMissing = useHalyardClient().isEnabled("missing");
  return `${isNew} ${color} ${missing} ${isText} ${isMissing}`;
}

function ChangingShop(): string {
  const limits = useValue("limits", { seats: 1 });
  // @ts-expect-error: the object is frozen.
  limits.seats += 1;
  return `${limits.seats}`;
}

afterEach(() => void jest.restoreAllMocks());

const htmlOf = (component: () => string) => {
  const client = createTestClient({
    ...{ checkout: true, color: "blue", limits: { value: { seats: 5 }, variation: "small" } },
  });
  return renderToString(createElement(HalyardProvider, { client }, createElement(component)));
};

it("hooks return values in the declared types", () => {
  expect(htmlOf(Shop)).toBe("true blue 5 true");
});

it("hooks reject other keys and types when compiled, and return the fallback", () => {
  jest.spyOn(console, "warn").mockReturnValue();
  expect(htmlOf(WrongShop)).toBe("false 1 a undefined false");
});

it("hooks return objects that are read-only when compiled, and frozen", () => {
  expect(() => htmlOf(ChangingShop)).toThrow(TypeError);
});
