import { expect, it } from "@jest/globals";
import { findLinks } from "../src/ui/find-links.ts";

const hrefsIn = (text: string) => findLinks(text).flatMap(({ href }) => href ?? []);

it("finds the web addresses of a text, without the punctuation of the sentence", () => {
  const text = "See https://example.com/a?b=1, (http://example.org) and https://w.org/Flag_(x).";
  expect(hrefsIn(text)).toEqual([
    "https://example.com/a?b=1",
    "http://example.org",
    "https://w.org/Flag_(x)",
  ]);
  expect(
    findLinks(text)
      .map((piece) => piece.text)
      .join(""),
  ).toBe(text);
});

it.each([
  "javascript:alert(1)",
  "data:text/html,x",
  "ftp://example.com",
  "https://",
  "example.com",
])("makes no link of %s", (text) => expect(findLinks(text)).toEqual([{ text }]));
