import "./check-node.mjs";

/** Entry point of `npm start` and `npm run dev`. It loads TypeScript only after the check of the Node.js version. */
await import("./main.ts");
