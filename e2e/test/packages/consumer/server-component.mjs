import * as halyard from "@halyard/react";

console.log(JSON.stringify(halyard));
