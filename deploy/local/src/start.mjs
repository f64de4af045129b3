import "./check-node.mjs";

/** The entry point of `npm start` and `npm run dev`. It loads TypeScript only after the check of Node.js. */
await import("./main.ts");
