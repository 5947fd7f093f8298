"""From a tile program to kernel text: read, stage, ir, lower, render, output; `cli` drives them."""
