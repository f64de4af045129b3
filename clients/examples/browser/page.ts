import { createClient, defineFlags } from "@halyard/browser-sdk";

declare const halyardOptions: { baseUrl: string; clientKey: string };

const declared = defineFlags({ "new-checkout": "boolean", "checkout-color": "string" });
const flags = createClient<typeof declared>({ ...halyardOptions, context: { id: "anna" } });

const main = document.querySelector("main") as HTMLElement;
main.innerHTML = `
  <label>User <select><option>anna</option><option>bruno</option></select></label>
  <p>Checkout: <output></output></p>
  <p><small></small></p>`;
const select = main.querySelector("select") as HTMLSelectElement;
const output = main.querySelector("output") as HTMLOutputElement;
const small = main.querySelector("small") as HTMLElement;

function show(): void {
  const { source, current } = flags.status;
  output.textContent = flags.isEnabled("new-checkout") ? "new" : "old";
  output.style.color = flags.getString("checkout-color", "black");
  small.textContent = `${current ? "current" : "possibly out of date"}, from ${source}`;
}

for (const event of ["change", "current", "stale"] as const) flags.on(event, show);
select.addEventListener("change", () => void flags.setContext({ id: select.value }));
show();
