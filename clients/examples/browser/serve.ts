import { servePage } from "../src/serve-page.ts";

await servePage({ script: new URL("page.ts", import.meta.url), title: "A shop" });
