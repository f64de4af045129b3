import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "@jest/globals";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const folders = [".", "docs", "docs/decisions", "conformance"];

const pages = folders.flatMap((folder) =>
  readdirSync(join(root, folder))
    .filter((file) => file.endsWith(".md"))
    .map((file) => join(folder, file)),
);

/** Addresses of the project's own files and folders, without the part of the page. */
function linksOf(page: string): string[] {
  const text = readFileSync(join(root, page), "utf8");
  return [...text.matchAll(/\]\(([^)#\s]+)[^)]*\)/g)]
    .map(([, address = ""]) => address)
    .filter((address) => !/^[a-z]+:/.test(address));
}

describe("given the project's pages", () => {
  it.each(pages)("%s links to nothing that is not there", (page) => {
    const missing = linksOf(page).filter(
      (address) => !existsSync(join(root, dirname(page), address)),
    );
    expect(missing).toEqual([]);
  });

  it("the list of decisions has every one of them", () => {
    const list = linksOf("docs/decisions/README.md");
    const records = readdirSync(join(root, "docs/decisions")).filter((file) => /^\d/.test(file));
    expect(list.toSorted()).toEqual(records.toSorted());
  });
});
