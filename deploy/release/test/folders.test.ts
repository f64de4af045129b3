import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, describe, expect, it } from "@jest/globals";

const script = join(import.meta.dirname, "../src/check-folders.ts");
const created: string[] = [];

afterEach(() => {
  for (const root of created.splice(0)) rmSync(root, { recursive: true });
});

/** Runs the check on a repository with the given files in `services/shop/src`, and others. */
function check(sources: Record<string, string>, others: Record<string, string> = {}) {
  const root = mkdtempSync(join(tmpdir(), "halyard-folders-"));
  created.push(root);
  const inShop = Object.entries(sources).map(
    ([path, text]) => [`services/shop/src/${path}`, text] as const,
  );
  for (const [path, text] of [...inShop, ...Object.entries(others)]) {
    const file = join(root, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
  const { status, stderr } = spawnSync(process.execPath, [script, root], { encoding: "utf8" });
  return { status, problems: stderr.trim().split("\n").filter(Boolean) };
}

describe("given the check for circles of folders", () => {
  it("accepts folders that import each other in one direction", () => {
    const files = {
      "main.ts": 'import { sell } from "./orders/sell.ts";\n',
      "orders/sell.ts": 'import { stock } from "../goods/stock.ts";\nimport "./order.ts";\n',
      "orders/order.ts": 'import "./sell.ts";\n',
      "goods/stock.ts": "export const stock = 1;\n",
    };
    expect(check(files)).toEqual({ status: 0, problems: [] });
  });

  it("rejects a circle, and names the imports that it consists of", () => {
    const files = {
      "main.ts": 'import { sell } from "./orders/sell.ts";\n',
      "orders/sell.ts": 'import { stock } from "../goods/stock.ts";\n',
      "goods/stock.ts": 'import type {\n  Price,\n} from "../prices/price.ts";\n',
      "prices/price.ts": 'export * from "../orders/order.ts";\n',
      "orders/order.ts": "export type Price = number;\n",
    };
    expect(check(files)).toEqual({
      status: 1,
      problems: [
        "services/shop: folders import each other in a circle: goods, orders, prices",
        "  goods/stock.ts imports prices",
        "  orders/sell.ts imports goods",
        "  prices/price.ts imports orders",
      ],
    });
  });

  it("rejects a circle between a folder and a file beside it", () => {
    const files = {
      "metrics.ts": 'import type { Order } from "./orders/order.ts";\n',
      "orders/order.ts": 'import { metrics } from "../metrics.ts";\n',
    };
    expect(check(files).status).toBe(1);
  });
});

describe("given the check for the order of folders", () => {
  const sources = {
    "main.ts": 'import "./orders/sell.ts";\n',
    "orders/sell.ts": "export const sell = 1;\n",
    "orders/returns/take-back.ts": 'import "../sell.ts";\nimport "../../goods/stock.ts";\n',
    "goods/stock.ts": "export const stock = 1;\n",
  };
  const table = (heading: string, rows: string[]) =>
    [`# Order`, ``, `| ${heading} | Contains |`, `|---|---|`, ...rows, ``, `Text.`, ``].join("\n");
  const checkFolders = (rows: string[]) =>
    check(sources, { "services/shop/README.md": table("Folder", rows) });

  it("accepts imports that go up in the table of the README", () => {
    const rows = ["| `goods` | what is sold |", "| `orders` | sales of `goods` |"];
    expect(checkFolders(rows)).toEqual({ status: 0, problems: [] });
  });

  it("rejects an import that goes down or stays in the row, and names its file", () => {
    const problem =
      "services/shop: orders/returns/take-back.ts imports goods, which is not above orders";
    for (const rows of [["| `orders` | |", "| `goods` | |"], ["| `goods`, `orders` | |"]])
      expect(checkFolders(rows)).toEqual({ status: 1, problems: [problem] });
  });

  it("rejects a table that lacks a folder or names another one", () => {
    expect(checkFolders(["| `goods` | |", "| `sales` | |"])).toEqual({
      status: 1,
      problems: [
        "services/shop: the table names sales, which does not exist",
        "services/shop: the table lacks orders",
      ],
    });
  });

  it("holds for the libraries, in the order of the architecture page", () => {
    const library = 'import { buy } from "@halyard/market";\n';
    const others = {
      "libs/market/src/index.ts": "export const buy = 1;\n",
      "libs/tills/src/index.ts": library,
    };
    const checkLibraries = (rows: string[]) =>
      check(sources, { ...others, "docs/architecture.md": table("Library", rows) });
    const [market, tills] = ["| [`market`](../libs/market) | |", "| [`tills`](../libs/tills) | |"];
    expect(checkLibraries([market, tills])).toEqual({ status: 0, problems: [] });
    expect(checkLibraries([tills, market])).toEqual({
      status: 1,
      problems: [
        "docs/architecture.md: libs/tills/src/index.ts imports market, which is not above tills",
      ],
    });
  });
});
