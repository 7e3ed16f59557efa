// What a guest needs of WASI: its arguments, lines to print, and an end.

@external("wasi_snapshot_preview1", "args_sizes_get")
declare function args_sizes_get(count: usize, size: usize): i32;
@external("wasi_snapshot_preview1", "args_get")
declare function args_get(pointers: usize, texts: usize): i32;
@external("wasi_snapshot_preview1", "fd_write")
declare function fd_write(fd: i32, iovecs: usize, count: i32, written: usize): i32;
@external("wasi_snapshot_preview1", "proc_exit")
declare function proc_exit(code: i32): void;

/** The guest's arguments, without its name. */
export function args(): string[] {
  const sizes = new StaticArray<u32>(2);
  const at = changetype<usize>(sizes);
  if (args_sizes_get(at, at + 4) != 0) return [];
  const pointers = new StaticArray<u32>(sizes[0]);
  const texts = new StaticArray<u8>(sizes[1]);
  if (args_get(changetype<usize>(pointers), changetype<usize>(texts)) != 0) return [];
  const found: string[] = [];
  for (let i: i32 = 1; i < pointers.length; i++) {
    const rest = changetype<usize>(texts) + texts.length - pointers[i];
    found.push(String.UTF8.decodeUnsafe(pointers[i], rest, true)); // up to its zero
  }
  return found;
}

function write(fd: i32, text: string): void {
  const bytes = String.UTF8.encode(text + "\n");
  const call = new StaticArray<u32>(3);
  call[0] = <u32>changetype<usize>(bytes);
  call[1] = bytes.byteLength;
  const at = changetype<usize>(call);
  fd_write(fd, at, 1, at + 8);
}

/** Prints a line. */
export function print(line: string): void {
  write(1, line);
}

/** Ends the guest with a line of what went wrong. */
export function fail(line: string): void {
  write(2, line);
  proc_exit(1);
  unreachable();
}

/** What `--use abort=.../wasi/abort` makes of a failed assertion. It traps, as a trap is shown with the lines that led there. */
export function abort(message: string | null, file: string | null, line: u32, column: u32): void {
  write(2, (message ? message : "abort") + " (" + (file ? file : "") + ":" + line.toString() + ":" + column.toString() + ")");
  unreachable();
}
