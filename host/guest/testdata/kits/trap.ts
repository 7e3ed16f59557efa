// Traps in a function that others call.

import { print } from "../../../../sdk/assemblyscript/wasi";

function last(at: usize): i32 {
  return load<i32>(at + 16);
}

function middle(i: usize): i32 {
  const end: usize = 0xfffffff0;
  if (i > 0) {
    return last(end - i) + 1;
  }
  return last(i + 77);
}

export function _start(): void {
  let sum = 0;
  for (let i = 0; i < 3; i++) sum += middle(i);
  print(sum.toString());
}
