import { servePage } from "../src/serve-page.ts";

await servePage({ script: new URL("app.tsx", import.meta.url), title: "A shop with React" });
