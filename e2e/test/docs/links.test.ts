import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "@jest/globals";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const folders = [
  ".",
  "docs",
  "docs/decisions",
  "conformance",
  "deploy/kubernetes",
  "bench/results",
  ...["clients", "libs", "services"].flatMap((parent) =>
    readdirSync(join(root, parent), { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => `${parent}/${name}`),
  ),
];

const pages = folders.flatMap((folder) =>
  readdirSync(join(root, folder))
    .filter((file) => file.endsWith(".md"))
    .map((file) => join(folder, file)),
);

/** Returns the links of a page to the project's own files, folders and headings. */
function linksOf(page: string): { address: string; file: string; anchor: string }[] {
  const text = readFileSync(join(root, page), "utf8");
  return [...text.matchAll(/\]\(([^)\s]+)[^)]*\)/g)]
    .map(([, address = ""]) => address)
    .filter((address) => !/^[a-z]+:/.test(address))
    .map((address) => {
      const [file = "", anchor = ""] = address.split("#");
      return { address, file: file === "" ? page : join(dirname(page), file), anchor };
    });
}

/** Returns the anchors that GitHub generates for the headings of a page. */
function anchorsOf(page: string): Set<string> {
  const text = readFileSync(join(root, page), "utf8").replace(/^```.*?^```/gms, "");
  const anchors = new Set<string>();
  for (const [, heading = ""] of text.matchAll(/^#+ (.*)$/gm)) {
    const anchor = heading
      .replace(/\[([^\]]*)\]\([^)]*\)/g, "$1")
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, "")
      .replaceAll(" ", "-");
    let unique = anchor;
    for (let count = 1; anchors.has(unique); count += 1) unique = `${anchor}-${count}`;
    anchors.add(unique);
  }
  return anchors;
}

describe("given the project's pages", () => {
  it.each(pages)("%s has no broken links", (page) => {
    const missing = linksOf(page).filter(
      ({ file, anchor }) =>
        !existsSync(join(root, file)) || (anchor !== "" && !anchorsOf(file).has(anchor)),
    );
    expect(missing.map(({ address }) => address)).toEqual([]);
  });

  it("the list of decisions is complete", () => {
    const list = linksOf("docs/decisions/README.md").map(({ address }) => address);
    const records = readdirSync(join(root, "docs/decisions")).filter((file) => /^\d/.test(file));
    expect(list.toSorted()).toEqual(records.toSorted());
  });
});
