'use strict';
// Bars of very many ranks, written pixel by pixel: a canvas takes too long for a hundred thousand of them.

class Pixels {
  // Of the area of a picture, in the device's pixels.
  constructor(width, height) {
    this.width = Math.max(1, Math.round(width));
    this.height = Math.max(1, Math.round(height));
    this.canvas = document.createElement('canvas');
    this.canvas.width = this.width;
    this.canvas.height = this.height;
    this.pen = this.canvas.getContext('2d');
    this.image = this.pen.createImageData(this.width, this.height);
    this.words = new Uint32Array(this.image.data.buffer);
  }
  // A colour as a word of pixels; `hex`: "#rrggbb".
  static word(hex, alpha) {
    const [red, green, blue] = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
    return new Uint32Array(Uint8Array.of(red, green, blue, Math.round(alpha * 255)).buffer)[0];
  }
  // [left, right) x [top, bottom), at least a pixel.
  fill(left, right, top, bottom, word) {
    const from = Math.max(0, Math.round(left));
    const to = Math.min(this.width, Math.max(Math.round(right), from + 1));
    const end = Math.min(this.height, Math.max(Math.round(bottom), Math.round(top) + 1));
    for (let y = Math.max(0, Math.round(top)); y < end; ++y) this.words.fill(word, y * this.width + from, y * this.width + to);
  }
  done() {
    this.pen.putImageData(this.image, 0, 0);
    return this.canvas;
  }
}
