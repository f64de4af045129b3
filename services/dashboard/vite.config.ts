import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

/** Address of the Halyard that receives API requests from the development server. */
const gateway = process.env.HALYARD_URL ?? "http://127.0.0.1:8080";

export default defineConfig({
  plugins: [react()],
  build: {
    target: "es2023",
    // The content security policy allows no `data:` URLs.
    assetsInlineLimit: 0,
    // Every asset has its hash in its name, so browsers keep it forever.
    assetsDir: "assets",
    reportCompressedSize: false,
    chunkSizeWarningLimit: 1_000,
  },
  server: {
    proxy: {
      "/api": gateway,
      "/openapi.json": gateway,
      "/docs": gateway,
      "/dashboard/sign-in": gateway,
    },
  },
});
