import type { Evaluator } from "@halyard/conformance";
import { type HalyardProviderProps, useFlag } from "@halyard/react";
import type { Client, Context } from "@halyard/server-sdk";
import type { ReactElement } from "react";
import { renderToString } from "react-dom/server";

/** The names that the programs of the pages take from their application. */
declare global {
  const baseUrl: string;
  const serverKey: string;
  const serverClient: Client;
  const context: Context;
  const options: NonNullable<HalyardProviderProps["options"]>;
  const root: HTMLElement;
  const evaluator: Evaluator;
  function render(shown: unknown): void;
  function showNewCheckout(): void;
  function App(): ReactElement;
  function Checkout(): ReactElement;
  function NewCheckout(): ReactElement;
  function OldCheckout(): ReactElement;
  function test(name: string, run: () => Promise<void>): void;
  function expect(value: unknown): { toEqual(expected: unknown): void };
}

Object.assign(globalThis, {
  render: renderToString,
  Checkout: () => String(useFlag("new-checkout")),
});
