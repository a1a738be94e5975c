module go_disk

go 1.21
