import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, describe, expect, it } from "@jest/globals";

const script = join(import.meta.dirname, "../src/check-folder-circles.ts");
const created: string[] = [];

afterEach(() => {
  for (const root of created.splice(0)) rmSync(root, { recursive: true });
});

/** Runs the check on a repository with the given files in `services/shop/src`. */
function check(files: Record<string, string>) {
  const root = mkdtempSync(join(tmpdir(), "halyard-circles-"));
  created.push(root);
  for (const [path, text] of Object.entries(files)) {
    const file = join(root, "services/shop/src", path);
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
