import "./styles/base.css";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./app.tsx";
import { receiveKeys } from "./session/hand-over.ts";
import { receivePerson } from "./session/receive-person.ts";
import { applyTheme, readTheme } from "./shell/theme.ts";

applyTheme(readTheme());
const root = document.getElementById("root");
if (root === null) throw new Error("index.html has no element with the id root");
await receiveKeys();
await receivePerson();
createRoot(root).render(
  <StrictMode>
    <App />
  </StrictMode>,
);
